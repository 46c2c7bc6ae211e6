"""The code of an image token: a fixed vector per label, summed. The aligner learns it, the
language model reads it.

Rows of the table: 0 background, 1 "holds a shape's centre", 2-7 kinds, 8-15 colours, 16-24
places.
"""

import torch
import torch.nn.functional as F

SCALE = 2.5  # length of each code vector; embeddings have length 0.3 * sqrt(256) = 4.8
GROUPS = ((2, 8), (8, 16), (16, 25))


def table(hidden):
    """[25, hidden] float32: orthogonal rows of length SCALE, always the same."""
    g = torch.Generator().manual_seed(77)
    q, _ = torch.linalg.qr(torch.randn(hidden, 25, generator=g))
    return (q.t() * SCALE).contiguous()


def encode(cells, tab, anchor=None):
    """cells [tokens, 4] int64 (kind, colour, place, anchor) -> codes [tokens, hidden]; anchor:
    soft weights instead.
    """
    out = torch.where((cells[:, :1] == 0), tab[0], torch.zeros(1))
    for i, (lo, _) in enumerate(GROUPS):
        out = out + torch.where(
            cells[:, i : i + 1] > 0, tab[(lo - 1 + cells[:, i]).clamp(min=0)], torch.zeros(1)
        )
    return out + (cells[:, 3:4] if anchor is None else anchor[:, None]) * tab[1]


def loss(feats, cells, soft, tab):
    """Loss of predicted codes (soft: anchor weights) and accuracies (kind, colour, place at
    anchor cells, anchors found, false anchors).
    """
    f = feats.float()
    logit = f @ tab.t() * (8 / SCALE**2)  # a right code gives 8, a wrong one 0
    anchor = cells[:, 3] > 0
    w = torch.where(anchor, 3.0, torch.where(cells[:, 0] > 0, 1.0, 0.0))
    total = 0.0
    acc = []
    for i, (lo, hi) in enumerate(GROUPS):
        target = (cells[:, i] - 1).clamp(min=0)
        ce = F.cross_entropy(logit[:, lo:hi], target, reduction="none")
        total = total + (ce * w).sum() / w.sum()
        acc.append((logit[:, lo:hi].argmax(1) == target)[anchor].float().mean().item())
    hit = logit[:, 1] - 4
    bce = F.binary_cross_entropy_with_logits(hit, soft, reduction="none")
    total = total + (bce * torch.where(anchor, 3.0, 1.0)).mean() * 2
    acc += [(hit[anchor] > 0).float().mean().item(), (hit[~anchor] > 0).float().mean().item()]
    mse = (f - encode(cells, tab, soft)).square().sum(1) / SCALE**2
    total = total + 0.15 * (mse * (0.3 + w)).sum() / (0.3 + w).sum()
    return total, acc
