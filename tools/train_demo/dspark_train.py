"""Trains the drafter on a frozen language model: `dspark_train.py RUN MINUTES`. Resumes from
RUN/dspark_last.pt.

The labels are the language model's own greedy tokens, so drafts are right when the model would
say the same.
"""

import os
import random
import sys
import time

import torch
import torch.nn.functional as F

import batches
import export
import lm_train
from model import BF, Mode
from optim import Optimiser


def draft_logits(model, h, prev):
    """Logits and confidence of guesses. h [A, K, hidden] of the draft blocks, prev [A, K] the
    tokens before each guess.
    """
    ds = model.dspark
    e = F.embedding(prev, ds.markov_embed.to(BF).float())
    lo = (
        model.head_logits(h.reshape(-1, h.shape[-1]), ds.norm).view(*prev.shape, -1)
        + e @ ds.markov_head.to(BF).float().t()
    )
    return lo, (torch.cat([h.float(), e], -1) @ ds.conf.to(BF).float().t())[..., 0]


@torch.no_grad()
def examples(model, docs, length, rows, limit):
    """Taps of the frozen model, anchors inside answers, the tokens before each guess, greedy
    labels and their mask.
    """
    k = model.cfg.block
    b, h, taps = lm_train.forward(model, docs, length, rows, want_taps=True)
    flat, doc, w = b.ids.view(-1), b.doc.view(-1), b.weights
    n = len(flat)
    anchors = torch.nonzero(w[2:n] * (doc[:-2] == doc[2:]))[:, 0]
    anchors = anchors[torch.randperm(len(anchors))[:limit]]
    at = anchors[:, None] + 1 + torch.arange(k)[None]  # position whose token precedes guess i
    nxt = (at + 1).clamp(max=n - 1)
    ok = (at + 1 < n) & (doc[nxt] == doc[anchors][:, None]) & (w[nxt] > 0)
    at = at.clamp(max=n - 1)
    need, where = torch.unique(at, return_inverse=True)
    label = model.logits(h[need]).argmax(1)[where]
    return taps, b, anchors, flat[at], label, ok


def main(run, minutes):
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    tok, model = export.newest(run)
    opt = Optimiser([("dspark." + n, p) for n, p in model.dspark.named_parameters()])
    path, step, elapsed = run + "/dspark_last.pt", 0, 0.0
    if os.path.exists(path):
        s = torch.load(path, weights_only=False)
        if s["opt"]:
            opt.load(s["opt"])
        step, elapsed = s["step"], s["elapsed"]
    trainer_rows = lm_train.Features(run, model)
    trainer_rows.refresh()
    Mode.qat = True
    saved, start = time.time(), time.process_time()
    hits, ended = [], False
    while not ended:
        spent = elapsed + time.process_time() - start
        frac = spent / (minutes * 60)
        ended = frac >= 1
        mix = lm_train.read_mix(run) or dict(lm_train.MIX)
        rng = random.Random(77000003 + step)
        job = mix["jobs"][
            step % 4 // 3 * (len(mix["jobs"]) > 1)
        ]  # every fourth step the second kind of rows
        docs = batches.sample(rng, tok, job["tasks"], job["length"], max(1, 1536 // job["length"]))
        model.eval()

        def rows(scenes):
            return (
                trainer_rows.from_pixels(scenes, rng)
                if mix["pixels"]
                else trainer_rows.from_codes(scenes, rng, 0.1)
            )

        taps, b, anchors, prev, label, ok = examples(model, docs, job["length"], rows, 192)
        model.train()
        lo, conf = draft_logits(
            model, model.dspark(model, taps, b.pos.view(-1).long(), b.doc.view(-1), anchors), prev
        )
        ce = F.cross_entropy(lo.flatten(0, 1), label.flatten(), reduction="none").view(label.shape)
        good = (lo.argmax(-1) == label).float()
        bce = F.binary_cross_entropy_with_logits(conf, good.detach(), reduction="none")
        loss = ((ce * torch.tensor([1.0, 0.9, 0.8, 0.7, 0.6]) + 0.2 * bce) * ok).sum() / ok.sum()
        opt.zero()
        loss.backward()
        opt.step(min(1, (step + 1) / 20) * min(1.0, (1 - frac) / 0.4 + 0.02))
        for st in model.dspark.stages:
            st.ffn.balance(0.005)
        hits.append((good * ok).sum(0) / ok.sum(0).clamp(min=1))
        step += 1
        if step % 20 == 0:
            print(
                "dspark %4d %5.1f min loss %.3f right per place %s"
                % (
                    step,
                    spent / 60,
                    loss.item(),
                    " ".join("%.2f" % x for x in torch.stack(hits).mean(0)),
                ),
                flush=True,
            )
            hits = []
        if time.time() - saved > 60 or ended:
            saved = time.time()
            torch.save(
                dict(dspark=model.dspark.state_dict(), opt=opt.state(), step=step, elapsed=spent),
                path + ".tmp",
            )
            os.replace(path + ".tmp", path)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
