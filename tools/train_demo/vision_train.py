"""Trains the vision tower alone: `vision_train.py RUN MINUTES`. Resumes from RUN/vision_last.pt.

Every patch must name the kind and colour of the shape that covers it and point to its centre and
half sizes (linear probe, dropped afterwards). Every image token must reproduce a fixed code: the
sum of code vectors for kind, colour, place and "holds the centre". The language model is trained
on such codes at the same time, so both fit together.
"""

import os
import random
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import codes
import lm_train
import pictures
from model import BF, Config, Vision
from optim import Optimiser

SIZES, EACH = 8, 4  # pictures of a step: SIZES random sizes, EACH pictures of each


def batch(rng, small, counts):
    """Scenes with a random one of `counts` shapes and fitted pictures, equal sizes adjacent."""
    out = []
    for _ in range(SIZES):
        size = pictures.picture_size(rng, small)
        for _ in range(EACH):
            sc = None
            while sc is None:
                n = rng.choice(counts)
                sc = pictures.scene(rng, n=n, size=size, tries=20)
                size = size if sc else pictures.picture_size(rng, small)
            out.append((sc, pictures.fitted(rng, sc, 0.88)))
    out.sort(key=lambda p: (p[1].height * p[1].width, p[1].height))
    return out


def tensors(scenes):
    """Patches as normalised bf16 with grid sizes, and the labels of all patches and tokens."""
    images, pk, pg, ck, sk = [], [], [], [], []
    for sc, im in scenes:
        p, h, w = pictures.patches(im)
        images.append((((torch.from_numpy(p).float() / 255 - 0.5) / 0.5).to(BF), h, w))
        a, g = pictures.patch_codes(sc)
        pk.append(a)
        pg.append(g)
        ck.append(pictures.cell_codes(sc))
        sk.append(pictures.soft_anchors(sc))
    t = torch.from_numpy
    return (
        images,
        t(np.concatenate(pk)),
        t(np.concatenate(pg)),
        t(np.concatenate(ck)),
        t(np.concatenate(sk)),
    )


def patch_loss(probe, x, kinds, geo):
    """Dense loss of the patch probe. x [patches, v_hidden]."""
    o = F.linear(x.float(), probe)
    hit = kinds[:, 0] > 0
    w = torch.where(hit, 1.0, 0.4)
    k = (F.cross_entropy(o[:, :7], kinds[:, 0], reduction="none") * w).sum() / w.sum()
    c = (F.cross_entropy(o[:, 7:16], kinds[:, 1], reduction="none") * w).sum() / w.sum()
    g = F.smooth_l1_loss(o[:, 16:20][hit], geo[hit], beta=0.3)
    return k + c + 2 * g


def main(run, minutes):
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    torch.manual_seed(11)
    cfg = Config()
    vision = Vision(cfg)
    probe = torch.nn.Parameter(torch.randn(20, cfg.v_hidden) * 0.02)
    opt = Optimiser(
        [("vision." + n, p) for n, p in vision.named_parameters()] + [("aux", probe)],
        lr_muon=0.02,
        lr_adam=2e-3,
    )
    table = codes.table(cfg.hidden)
    step, elapsed = 0, 0.0
    path = run + "/vision_last.pt"
    if os.path.exists(path):
        s = torch.load(path, weights_only=False)
        vision.load_state_dict(s["vision"])
        if s["opt"]:
            probe.data.copy_(s["probe"])
            opt.load(s["opt"])
        step, elapsed = s["step"], s["elapsed"]
    last, start = time.time(), time.process_time()
    stats, seen, t0 = [], 0, time.time()
    ended, stop = False, lm_train.stop_flag()
    while not ended:
        spent = elapsed + time.process_time() - start
        if step % 10 == 0:
            minutes = (lm_train.read_mix(run) or {}).get("vision_minutes", minutes)
        frac = spent / (minutes * 60)
        ended = frac >= 1 or bool(stop)
        rng = random.Random(5000011 + step)
        # Many shapes a picture teach more per second; the last part has the numbers of the demo.
        counts = [2, 3, 4, 5, 6, 7] if frac < 0.75 else [1, 2, 3, 3, 4, 4]
        scenes = batch(rng, 0.7 if frac < 0.25 else 0.35, counts)
        images, kinds, geo, cells, soft = tensors(scenes)
        feats, x = vision(images, want_patches=True)
        lp = patch_loss(probe, x, kinds, geo)
        lc, acc = codes.loss(feats, cells, soft, table)
        loss = lc + (0.5 if frac < 0.6 else 0.25) * lp
        opt.zero()
        loss.backward()
        opt.step(min(1, (step + 1) / 30) * min(1, (1 - frac) / 0.4 + 0.02))
        step += 1
        seen += len(images)
        stats.append([loss.item(), lp.item(), *acc])
        if step % 20 == 0:
            m = np.mean(stats, 0)
            print(
                "vision %5d %5.1f min loss %.3f patch %.3f | centres: "
                "kind %.3f colour %.3f place %.3f found %.3f false %.4f | %.0f pictures/s"
                % (step, spent / 60, *m, seen / (time.time() - t0)),
                flush=True,
            )
            stats, seen, t0 = [], 0, time.time()
        if time.time() - last > 60 or ended:
            last = time.time()
            state = dict(
                vision=vision.state_dict(),
                probe=probe.data,
                opt=opt.state(),
                step=step,
                elapsed=spent,
            )
            torch.save(state, path + ".tmp")
            os.replace(path + ".tmp", path)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
