"""The vision tower and the aligner."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from config import param
from kernels import BF, rmsnorm


class VisionBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg.v_hidden
        self.heads = cfg.v_heads
        self.norm1, self.norm2 = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d))
        self.wqkv, self.bqkv = param(3 * d, d), nn.Parameter(torch.zeros(3 * d))
        self.wo, self.bo = param(d, d, std=0.5 * d**-0.5), nn.Parameter(torch.zeros(d))
        self.w1, self.w2 = param(2 * cfg.v_inter, d), param(
            d, cfg.v_inter, std=0.5 * cfg.v_inter**-0.5
        )

    def forward(self, x, spans, cos, sin):
        d = x.shape[1]
        qkv = F.linear(rmsnorm(x, self.norm1, 1e-6), self.wqkv.to(BF), self.bqkv.to(BF)).view(
            -1, 3, self.heads, d // self.heads
        )
        qk = qkv[:, :2].float()
        a, b = qk.chunk(2, -1)
        qk = torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(BF)
        out, lo = [], 0
        for n, size in spans:
            hi = lo + n * size
            q, k, v = (
                t[lo:hi].reshape(n, size, self.heads, -1).transpose(1, 2)
                for t in (qk[:, 0], qk[:, 1], qkv[:, 2])
            )
            out.append(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(hi - lo, d))
            lo = hi
        x = x + F.linear(torch.cat(out), self.wo.to(BF), self.bo.to(BF))
        g, u = F.linear(rmsnorm(x, self.norm2, 1e-6), self.w1.to(BF)).chunk(2, -1)
        return x + F.linear(F.silu(g) * u, self.w2.to(BF))


class Vision(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        d, D = cfg.v_hidden, cfg.hidden
        self.proj, self.bias = param(d, 3 * cfg.patch**2), nn.Parameter(torch.zeros(d))
        self.blocks = nn.ModuleList(VisionBlock(cfg) for _ in range(cfg.v_layers))
        self.norm = nn.Parameter(torch.ones(d))
        self.a1, self.ab1 = param(D, d * cfg.merge**2), nn.Parameter(torch.zeros(D))
        self.a2, self.ab2 = param(D, D), nn.Parameter(torch.zeros(D))

    def forward(self, images, want_patches=False):
        """images: list of (patches bf16 [N,588], rows, cols), equal sizes adjacent. Returns
        rows of features per image token.
        """
        c = self.cfg
        hd = c.v_hidden // c.v_heads
        f = c.theta ** (-2.0 * torch.arange(hd // 4).float() / (hd // 2))
        ang, spans = [], []
        for _, h, w in images:
            r = torch.arange(h).float()[:, None, None] * f
            q = torch.arange(w).float()[None, :, None] * f
            ang.append(torch.cat([r.expand(h, w, -1), q.expand(h, w, -1)], -1).view(h * w, -1))
            if spans and spans[-1][1] == h * w:
                spans[-1][0] += 1
            else:
                spans.append([1, h * w])
        ang = torch.cat(ang)[:, None, None]
        cos, sin = ang.cos(), ang.sin()
        x = F.linear(torch.cat([p for p, _, _ in images]), self.proj.to(BF), self.bias.to(BF))
        for b in self.blocks:
            x = b(x, spans, cos, sin)
        x = rmsnorm(x, self.norm, 1e-6)
        m, cells, lo = c.merge, [], 0
        for _, h, w in images:
            y = x[lo : lo + h * w].view(h, w, -1)
            lo += h * w
            y = F.pad(y, (0, 0, 0, -w % m, 0, -h % m))
            gh, gw = y.shape[0] // m, y.shape[1] // m
            cells.append(y.view(gh, m, gw, m, -1).permute(0, 2, 4, 1, 3).reshape(gh * gw, -1))
        v = F.linear(torch.cat(cells), self.a1.to(BF), self.ab1.to(BF))
        y = F.linear(F.gelu(v), self.a2.to(BF), self.ab2.to(BF))
        return (y, x) if want_patches else y
