"""Trains the language model: `lm_train.py RUN`. RUN holds tokenizer.json, mix.json (re-read while
it runs), checkpoints.

Pictures reach the model as codes or, in a share mix "pixels" of the steps, through the vision
tower of RUN/vision_last.pt, frozen and re-read when it changes. The schedule runs over mix
"minutes"; a restart goes on from RUN/lm_last.pt.
"""

import json
import os
import random
import signal
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import batches
import codes
import pictures
from exchange import Exchange
from layers import Moe
from model import BF, Batch, Config, Mode, Model
from optim import Optimiser
from prompt import IMAGE, SYSTEM
from tokenizer import Tok

MIX = {
    "minutes": 90,
    "lr": 1.0,
    "warmup": 40,
    "decay_from": 0.7,
    "qat": False,
    "pixels": 0.0,
    "noise": 0.15,
    "easy": False,
    "threads": 1,
    "processes": 2,
    "balance": 0.01,
    "select": True,
    "jobs": [
        {
            "every": 1,
            "length": 256,
            "rows": 8,
            "tasks": {"pic": 5, "arith": 1.5, "faq": 1, "out": 0.2, "recall": 1.5, "copy": 0.8},
        }
    ],
}


def build(run):
    """Tokenizer, configuration and a fresh model with fixed seed."""
    tok = Tok(run + "/tokenizer.json")
    torch.manual_seed(11)
    cfg = Config(
        engram_compressed=len(set(tok.map)), image_token=tok.id[IMAGE], noise=tok.id[SYSTEM]
    )
    return tok, cfg, Model(cfg, tok.map)


def trained_parameters(model):
    """What this stage trains: everything but the tower and the drafter."""
    return [
        (n, p) for n, p in model.named_parameters() if not n.startswith(("dspark.", "vision."))
    ]


def read_mix(run):
    try:
        with open(run + "/mix.json") as f:
            return dict(MIX, **json.load(f))
    except (OSError, ValueError):
        return None


class Features:
    """Turns scenes into aligner rows, from codes or with the vision tower."""

    def __init__(self, run, model):
        self.path, self.model, self.stamp = run + "/vision_last.pt", model, None
        self.table = codes.table(model.cfg.hidden)

    def refresh(self):
        """Loads the tower again when its checkpoint has changed."""
        stamp = os.path.getmtime(self.path)
        if stamp != self.stamp:
            self.stamp = stamp
            self.model.vision.load_state_dict(torch.load(self.path, weights_only=False)["vision"])

    def from_codes(self, scenes, rng, noise):
        """Ideal codes with noise: weaker labels away from the centre, shared centres and
        Gaussian noise.
        """
        t = torch.from_numpy(np.concatenate([pictures.cell_codes(s) for s in scenes]))
        soft = torch.from_numpy(np.concatenate([pictures.soft_anchors(s, rng) for s in scenes]))
        x = codes.encode(t, self.table, soft)
        g = torch.Generator().manual_seed(rng.randrange(1 << 30))
        keep = torch.where(soft[:, None] > 0.2, 1.0, torch.rand(len(t), 1, generator=g))
        x = x * torch.where(t[:, :1] > 0, 0.3 + 0.7 * keep, 1.0)
        return (x + noise * torch.randn(x.shape, generator=g)).to(BF)

    def from_pixels(self, scenes, rng):
        """Draws the scenes and runs the tower on them, pictures of equal size together."""
        order = sorted(
            range(len(scenes)), key=lambda i: pictures.plan(scenes[i]["w"], scenes[i]["h"])
        )
        images = []
        for i in order:
            sc = scenes[i]
            sc["style"] = sc["style"] or pictures.drawing_style(rng)
            p, h, w = pictures.patches(pictures.fitted(rng, sc, 0.9))
            images.append((((torch.from_numpy(p).float() / 255 - 0.5) / 0.5).to(BF), h, w))
        out = self.model.vision(images).split([-(-h // 3) * -(-w // 3) for _, h, w in images])
        back = [None] * len(scenes)
        for i, o in zip(order, out):
            back[i] = o
        return torch.cat(back)


def forward(model, docs, length, features, distil=False, want_taps=False):
    """Runs packed documents. features(scenes) -> aligner rows. Returns batch, logits and
    targets of the answers, owners.
    """
    ids, pos, doc, kind, w, order = batches.pack(docs, length)
    t = torch.from_numpy
    b = Batch(model.cfg, t(ids), t(pos), t(doc), t(kind))
    scenes = [s for d in order for s in d.images]
    h = model(b, features(scenes) if scenes else None, distil=distil, want_taps=want_taps)
    b.order, b.weights = order, t(w).view(-1)
    if want_taps:
        model.flat_ids = b.ids.view(-1)
        return b, *h
    at = torch.nonzero(b.weights)[:, 0]  # target positions; the token before predicts
    return b, model.logits(h[at - 1]), b.ids.view(-1)[at], b.doc.view(-1)[at]


def tally(stats, b, ce, good, owner):
    """Adds per-task loss sums and counts of wholly right documents."""
    n = len(b.order)
    z = torch.zeros(3, n)
    z[0].index_add_(0, owner, 1 - good)
    z[1].index_add_(0, owner, torch.ones_like(ce))
    z[2].index_add_(0, owner, ce)
    for d, (x, c, l) in zip(b.order, z.t().tolist()):
        a = stats.setdefault(d.task, [0, 0, 0, 0])
        for i, v in enumerate((l, c, x == 0, 1)):
            a[i] += v


class Trainer:
    """Model, optimiser and progress of a run; one of several processes if there is an exchange."""

    def __init__(self, run, rank=0, exchange=None):
        self.run, self.rank, self.exchange = run, rank, exchange
        self.tok, cfg, self.model = build(run)
        self.opt = Optimiser(trained_parameters(self.model))
        self.features = Features(run, self.model)
        self.step, self.elapsed = 0, 0.0
        self.stats, self.tokens = {}, 0
        self.path = run + "/lm_last.pt"
        if os.path.exists(self.path):
            s = torch.load(self.path, weights_only=False)
            self.model.load_state_dict(s["model"])
            if s["opt"]:
                self.opt.load(s["opt"])
            self.step, self.elapsed = s["step"], s["elapsed"]
        self.model.train()
        self.experts = [m for m in self.model.modules() if isinstance(m, Moe)]

    def save(self, name="lm_last.pt"):
        s = dict(
            model=self.model.state_dict(),
            opt=self.opt.state(),
            step=self.step,
            elapsed=self.elapsed,
        )
        torch.save(s, self.run + "/tmp.pt")
        os.replace(self.run + "/tmp.pt", self.run + "/" + name)

    def rows_of(self, mix, rng):
        if rng.random() >= mix["pixels"]:
            return lambda scenes: self.features.from_codes(scenes, rng, mix["noise"])
        self.features.refresh()

        def frozen(scenes):
            with torch.no_grad():
                return self.features.from_pixels(scenes, rng)

        return frozen

    def update(self, mix, frac):
        """One optimiser step over the mix's jobs: rows of one length and tasks; "distil" also
        trains the indexer.
        """
        Mode.qat = bool(mix["qat"]) and frac >= float(mix["qat"])
        Mode.select = bool(mix["select"])
        rng = random.Random(7000021 + self.step + 500000000 * self.rank)
        rows = self.rows_of(mix, rng)
        self.opt.zero()
        for job in mix["jobs"]:
            if self.step % job["every"]:
                continue
            docs = batches.sample(
                rng, self.tok, job["tasks"], job["length"], job["rows"], mix["easy"]
            )
            b, logits, target, owner = forward(
                self.model, docs, job["length"], rows, job.get("distil", False)
            )
            ce = F.cross_entropy(logits, target, reduction="none")
            loss = ce.sum() / (len(ce) + 100)
            if b.index_losses:
                il = sum(b.index_losses) / len(b.index_losses)
                loss = loss + 0.3 * il
                self.stats.setdefault("index", []).append(il.item())
            loss.backward()
            self.tokens += b.ids.numel() * (self.exchange.count if self.exchange else 1)
            with torch.no_grad():
                tally(self.stats, b, ce, (logits.argmax(1) == target).float(), owner)
        lr = (
            mix["lr"]
            * min(1, (self.step + 1) / mix["warmup"])
            * min(1.0, (1 - frac) / (1 - mix["decay_from"]) + 0.01)
        )
        if self.exchange:
            self.exchange.mean(self.rank, self.opt.params(), self.experts)
        gn = self.opt.step(lr)
        bal = self.model.balance(mix["balance"] if frac < 0.8 else 0.2 * mix["balance"])
        self.step += 1
        return lr, gn, max(bal)

    def report(self, lr, gn, bal, seconds):
        out = []
        for k, a in sorted(self.stats.items()):
            out.append(
                "%s %.3f" % (k, np.mean(a))
                if k == "index"
                else "%s %.3f/%.2f" % (k, a[0] / a[1], a[2] / a[3])
            )
        print(
            "%5d %5.1f min lr %.2f g %.2f bal %.2f %4.0f tok/s | %s"
            % (self.step, self.elapsed / 60, lr, gn, bal, self.tokens / seconds, " ".join(out)),
            flush=True,
        )
        self.stats, self.tokens = {}, 0


def stop_flag():
    """A list that SIGTERM fills: training then saves and ends."""
    flag = []
    signal.signal(signal.SIGTERM, lambda *_: flag.append(1))
    return flag


def train(run, rank=0, exchange=None):
    """The loop of one process. Rank 0 keeps the clock, reports and saves."""
    stop = stop_flag()
    t = Trainer(run, rank, exchange)
    if rank == 0:
        print(t.model.counts(), "step", t.step, flush=True)
    mix = read_mix(run) or dict(MIX)
    last = shown = time.time()
    while True:
        now = time.process_time()
        is_stopped = bool(stop)
        if t.step % 5 == 0:
            mix = read_mix(run) or mix
        if exchange:
            mix, t.elapsed, is_stopped = exchange.tell(rank, mix, t.elapsed, is_stopped)
        frac = t.elapsed / (mix["minutes"] * 60)
        if is_stopped or frac >= 1:
            break
        torch.set_num_threads(mix["threads"])
        info = t.update(mix, frac)
        t.elapsed += time.process_time() - now
        if rank == 0 and t.step % 20 == 0:
            t.report(*info, time.time() - shown)
            shown = time.time()
        if rank == 0 and time.time() - last > 120:
            last = time.time()
            t.save()
    if rank == 0:
        t.save()
        if not is_stopped:
            t.save("lm_final.pt")


def main(run):
    count = (read_mix(run) or MIX)["processes"]
    if count == 1:
        return train(run)
    context = torch.multiprocessing.get_context("spawn")
    _, _, model = build(run)
    named = trained_parameters(model)
    loads = sum(m.load.numel() for m in model.modules() if isinstance(m, Moe))
    sizes = [p.numel() for p in Optimiser(named).params()]
    exchange = Exchange(context, count, sizes, loads)
    del model, named
    others = [context.Process(target=train, args=(run, r, exchange)) for r in range(1, count)]
    for p in others:
        p.start()
    train(run, 0, exchange)
    for p in others:
        p.join()


if __name__ == "__main__":
    main(sys.argv[1])
