"""Configuration of the demo model, quantisation-aware weights and small helpers."""

import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn

from kernels import BF, FQ4_32, FQ8_32, call, fake_quant, fp8_weight

NEG = -3e4


@dataclass
class Config:
    vocab: int = 2048
    hidden: int = 256
    layers: int = 8
    heads: int = 4
    head_dim: int = 64
    rope: int = 16
    q_lora: int = 128
    o_groups: int = 2
    o_lora: int = 64
    window: int = 64
    ratios: list = field(default_factory=lambda: [0, 2, 2, 2, 1, 1, 1, 1])
    kv_source: list = field(default_factory=lambda: [1, 3, 4])
    index_source: list = field(default_factory=lambda: [1, 3, 4, 6])
    candidate_source: int = 4
    cand_blocks: int = 96
    cand_size: int = 8
    index_heads: int = 4
    index_dim: int = 64
    index_topk: int = 512
    theta: float = 1e4
    compress_theta: float = 1.6e5
    yarn_factor: float = 4.0
    yarn_original: int = 1024
    max_pos: int = 4096
    experts: int = 8
    active: int = 2
    inter: int = 128
    route_scale: float = 1.5
    swiglu_limit: float = 10.0
    hc_iters: int = 20
    hc_eps: float = 1e-6
    engram_layers: list = field(default_factory=lambda: [1, 3])
    engram_vocab: int = 1000
    engram_heads: int = 2
    engram_dim: int = 32
    engram_pad: int = 2
    engram_compressed: int = 0
    mtp: int = 3
    block: int = 5
    noise: int = 0
    targets: list = field(default_factory=lambda: [5, 6, 7])
    markov: int = 32
    draft_experts: int = 8
    draft_active: int = 2
    v_layers: int = 4
    v_hidden: int = 128
    v_heads: int = 4
    v_inter: int = 256
    patch: int = 14
    merge: int = 3
    max_image_tokens: int = 48
    min_pixels: int = 28224
    image_token: int = 0


class Mode:
    """Global switches of a run."""

    qat = False  # FP8/FP4 weights and FP8 activations, straight-through
    select = True  # apply the indexer's top-k where more entries are visible than index_topk


class WeightQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, kind):
        if kind == "fp4":
            b = w.to(BF).contiguous()
            return fp4_weight(b)
        return fp8_weight(w).to(BF)

    @staticmethod
    def backward(ctx, g):
        return g.float(), None


def fp4_weight(x):
    """Dequantised value of a weight stored as FP4 with one scale per 32 inputs."""
    y = torch.empty_like(x)
    call("fake_quant", x, y, x.numel(), (FQ4_32,))
    return y


def weight(w, kind):
    return WeightQuant.apply(w, kind) if Mode.qat else w.to(BF)


def act(x):
    return fake_quant(x, FQ8_32) if Mode.qat else x


def param(*shape, std=None):
    return nn.Parameter(torch.randn(*shape) * (shape[-1] ** -0.5 if std is None else std))


def rope_table(cfg, compressed):
    r = cfg.rope
    base = cfg.compress_theta if compressed else cfg.theta
    f = base ** (-2.0 * torch.arange(r // 2, dtype=torch.float64) / r)
    if compressed:

        def cd(n):
            return r * math.log(cfg.yarn_original / (n * 2 * math.pi)) / (2 * math.log(base))

        low, high = max(math.floor(cd(32)), 0), min(math.ceil(cd(1)), r - 1)
        t = ((torch.arange(r // 2, dtype=torch.float64) - low) / max(high - low, 1e-3)).clamp(0, 1)
        f = f / cfg.yarn_factor * t + f * (1 - t)
    a = torch.arange(cfg.max_pos, dtype=torch.float32)[:, None] * f.float()[None]
    return a.cos().contiguous(), a.sin().contiguous()
