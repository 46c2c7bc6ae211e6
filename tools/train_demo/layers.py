"""Mixture of experts, hyper-connections, the transformer block and Engram."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from attention import Attention
from config import Mode, act, param, weight
from kernels import (
    BF,
    FQ8_32,
    Collapse,
    Expand,
    Experts,
    HcCoef,
    HcMix,
    SwiGlu,
    fake_quant,
    rmsnorm,
)


class Moe(nn.Module):
    def __init__(self, cfg, experts, active):
        super().__init__()
        self.cfg, self.active = cfg, active
        E, D, I = experts, cfg.hidden, cfg.inter
        self.gate = param(E, D)
        self.register_buffer("bias", torch.zeros(E))
        self.register_buffer("bias_vl", torch.zeros(E))
        self.w13 = param(E, 2 * I, D)
        self.w2 = param(E, D, I, std=0.3 * I**-0.5)
        self.s13 = param(2 * I, D)
        self.s2 = param(D, I, std=0.3 * I**-0.5)
        self.load = torch.zeros(2, E)

    def forward(self, x, image):
        c = self.cfg
        s = torch.sqrt(F.softplus(F.linear(x.float(), self.gate.to(BF).float())))
        with torch.no_grad():
            bias = (
                self.bias if image is None else torch.where(image[:, None], self.bias_vl, self.bias)
            )
            idx = torch.topk(s + bias, self.active, dim=-1).indices
            if self.training:
                hot = F.one_hot(idx, s.shape[1]).sum(1).float()
                m = torch.zeros(len(x), dtype=torch.bool) if image is None else image
                self.load[0] += hot[~m].sum(0)
                self.load[1] += hot[m].sum(0)
        g = s.gather(1, idx)
        g = g / (g.sum(1, keepdim=True) + 1e-20) * c.route_scale
        x = act(x)
        y = Experts.apply(
            x, g, idx, weight(self.w13, "fp4"), weight(self.w2, "fp4"), c.swiglu_limit, Mode.qat
        )
        h = SwiGlu.apply(F.linear(x, weight(self.s13, "fp8")), c.swiglu_limit)
        return y + F.linear(act(h), weight(self.s2, "fp8"))

    def balance(self, rate):
        for load, bias in zip(self.load, (self.bias, self.bias_vl)):
            if load.sum() > 0:
                bias += rate * torch.sign(load.mean() - load)
                bias -= bias.mean()
        total = self.load.sum(0)
        out = (total.max() / total.mean()).item()
        self.load.zero_()
        return out


class HyperConnection(nn.Module):
    def __init__(self, cfg, site):
        super().__init__()
        self.cfg = cfg
        self.fn = param(24, 4 * cfg.hidden, std=0.02)
        base = torch.zeros(24)
        base[:4] = -2.2
        base[site % 4] = 0.85
        base[8:] = (torch.eye(4) * 4).reshape(-1)
        self.base = nn.Parameter(base)
        self.scale = nn.Parameter(torch.full((3,), 0.1))

    def forward(self, x):
        return HcCoef.apply(
            HcMix.apply(x, self.fn.to(BF)),
            self.scale,
            self.base,
            self.cfg.hc_iters,
            self.cfg.hc_eps,
        )


class Block(nn.Module):
    def __init__(self, cfg, layer, ratio, experts, active):
        super().__init__()
        self.attn_norm = nn.Parameter(torch.ones(cfg.hidden))
        self.ffn_norm = nn.Parameter(torch.ones(cfg.hidden))
        self.hc_attn = HyperConnection(cfg, 2 * layer)
        self.hc_ffn = HyperConnection(cfg, 2 * layer + 1)
        self.attn = Attention(cfg, layer, ratio)
        self.ffn = Moe(cfg, experts, active)

    def forward(self, X, pre, attend, image):
        pa, qa, ca = self.hc_attn(X)
        a = attend(rmsnorm(Collapse.apply(X, pre), self.attn_norm))
        X = Expand.apply(X, a, qa, ca)
        pf, qf, cf = self.hc_ffn(X)
        f = self.ffn(rmsnorm(Collapse.apply(X, pa), self.ffn_norm), image)
        return Expand.apply(X, f, qf, cf), pf


def is_prime(n):
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))


class Engram(nn.Module):
    def __init__(self, cfg, layer, used):
        super().__init__()
        self.cfg = cfg
        self.primes, cur_all = [], used
        for _ in range(3):
            cur, row = cfg.engram_vocab - 1, []
            for _ in range(cfg.engram_heads):
                cur += 1
                while not is_prime(cur) or cur in cur_all:
                    cur += 1
                cur_all.add(cur)
                row.append(cur)
            self.primes.append(row)
        self.rows = sum(map(sum, self.primes))
        bound = max(1, (2**63 - 1) // max(cfg.engram_compressed, 1) // 2)
        self.mult = (
            np.random.default_rng(10007 * layer).integers(0, bound, size=4, dtype=np.int64) * 2 + 1
        )
        e = 3 * cfg.engram_heads * cfg.engram_dim
        self.embed = param(self.rows, cfg.engram_dim, std=0.3)
        self.wkv = param(5 * cfg.hidden, e)
        with torch.no_grad():
            self.wkv[4 * cfg.hidden :] *= 0.2
        self.q_weight = nn.Parameter(torch.ones(4, cfg.hidden))
        self.k_weight = nn.Parameter(torch.ones(4, cfg.hidden))

    def addresses(self, cids, pos, dead, pad):
        """cids/pos/dead NumPy [N] in row order; returns rows [N, 3*heads]."""
        t, blocked, h, cols, off = cids.copy(), dead.copy(), None, [], 0
        t[blocked] = pad
        h = t * self.mult[0]
        for n in range(1, 4):
            prev = np.concatenate([np.zeros(n, np.int64), cids[:-n]])
            prev_dead = np.concatenate([np.ones(n, bool), dead[:-n]])
            blocked = blocked | (pos < n) | prev_dead
            h = h ^ (np.where(blocked, pad, prev) * self.mult[n])
            for p in self.primes[n - 1]:
                cols.append(h % p + off)
                off += p
        return np.stack(cols, 1)

    def forward(self, X, rows, live):
        c = self.cfg
        if Mode.qat:
            f = self.embed
            table = f + (fake_quant(f.to(BF).contiguous(), FQ8_32).float() - f).detach()
        else:
            table = self.embed
        e = F.embedding(rows, table).to(BF).view(len(rows), -1)
        y = F.linear(act(e), weight(self.wkv, "fp8"))
        key = y[:, : 4 * c.hidden].float().view(-1, 4, c.hidden)
        value = y[:, 4 * c.hidden :].float()
        w = self.q_weight.to(BF).float() * self.k_weight.to(BF).float()
        x = X.float()
        rho = torch.rsqrt(x.square().mean(-1) + 1e-20) * torch.rsqrt(key.square().mean(-1) + 1e-20)
        dot = (x * w * key).sum(-1) * rho * c.hidden**-0.5
        gate = (
            torch.sigmoid(torch.copysign(torch.sqrt(dot.abs().clamp(min=1e-6)), dot))
            * live[:, None]
        )
        return (x + gate[..., None] * value[:, None]).to(BF)
