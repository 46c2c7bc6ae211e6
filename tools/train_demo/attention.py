"""Packed training rows and compressed sparse attention with window, compressor, indexer and
sinks.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from config import NEG, Mode, act, param, weight
from kernels import BF, FQ4_16, FQ4_32, FQ8_32, Rope, fake_quant, rmsnorm


class Batch:
    """Packed rows and their masks. ids/pos/doc int64 [B,L] (doc -1 = filler), kind 0 text,
    1..4 image span.
    """

    def __init__(self, cfg, ids, pos, doc, kind):
        self.cfg, self.ids, self.doc, self.kind = cfg, ids, doc, kind
        self.B, self.L = ids.shape
        self.pos = pos.to(torch.int32).contiguous()
        W, B, L = cfg.window, self.B, self.L
        assert L % W == 0
        d = F.pad(doc, (W, 0), value=-2).view(B, L // W + 1, W)
        keys = torch.cat([d[:, :-1], d[:, 1:]], 2)[:, :, None, :]
        q = torch.arange(W)[:, None]
        k = torch.arange(2 * W)[None] - W
        ok = (k <= q) & (k > q - W) & (doc.view(B, -1, W)[..., None] == keys) & (keys >= 0)
        self.wmask = torch.where(ok, 0.0, NEG).to(BF).view(B, L, 1, 2 * W)
        self.span = 1 + int(pos.max())
        self.cmask, self.visible = {}, {}
        for r in set(cfg.ratios) - {0}:
            g = torch.arange(0, L, r)
            ok = (
                (doc[:, :, None] == doc[:, None, ::r])
                & (doc[:, :, None] >= 0)
                & ((g + r - 1)[None, None] <= torch.arange(L)[None, :, None])
            )
            self.visible[r] = ok
            self.cmask[r] = torch.where(ok, 0.0, NEG).to(BF).view(B, L, 1, L // r)
        self.gpos = {r: self.pos[:, ::r].contiguous() for r in set(cfg.ratios) - {0}}


class Compressor(nn.Module):
    def __init__(self, cfg, ratio):
        super().__init__()
        self.ratio = ratio
        self.wkv = param(cfg.head_dim, cfg.hidden)
        if ratio == 2:
            self.wgate = param(cfg.head_dim, cfg.hidden, std=0.02)
        self.norm = nn.Parameter(torch.ones(cfg.head_dim))

    def forward(self, x, B, L):
        k = F.linear(x, self.wkv.to(BF))
        if self.ratio == 2:
            g = F.linear(x, self.wgate.to(BF)).float().view(-1, 2, k.shape[-1])
            k = (torch.softmax(g, 1) * k.float().view(-1, 2, k.shape[-1])).sum(1).to(BF)
        return rmsnorm(k, self.norm)


class Indexer(nn.Module):
    def __init__(self, cfg, owner):
        super().__init__()
        self.wq_b = param(cfg.index_heads * cfg.index_dim, cfg.q_lora)
        self.weights_proj = param(cfg.index_heads, cfg.hidden)
        if owner:
            self.wk = param(cfg.index_dim, cfg.head_dim)
            self.k_norm = nn.Parameter(torch.ones(cfg.index_dim))


class Attention(nn.Module):
    def __init__(self, cfg, layer, ratio):
        super().__init__()
        self.cfg, self.layer, self.ratio = cfg, layer, ratio
        H, d = cfg.heads, cfg.head_dim
        self.wq_a = param(cfg.q_lora, cfg.hidden)
        self.q_norm = nn.Parameter(torch.ones(cfg.q_lora))
        self.wq_b = param(H * d, cfg.q_lora)
        self.wkv = param(d, cfg.hidden)
        self.kv_norm = nn.Parameter(torch.ones(d))
        self.wo_a = param(cfg.o_groups * cfg.o_lora, H * d // cfg.o_groups)
        self.wo_b = param(
            cfg.hidden, cfg.o_groups * cfg.o_lora, std=0.2 * (cfg.o_groups * cfg.o_lora) ** -0.5
        )
        self.attn_sink = nn.Parameter(torch.zeros(H))
        if layer in cfg.kv_source and ratio:
            self.compressor = Compressor(cfg, ratio)
        if layer in cfg.index_source and ratio:
            self.indexer = Indexer(cfg, layer in cfg.kv_source)

    def query(self, x, pos, table):
        c = self.cfg
        xq = act(x)
        qr = rmsnorm(F.linear(xq, weight(self.wq_a, "fp8")), self.q_norm)
        q = F.linear(act(qr), weight(self.wq_b, "fp8")).view(-1, c.heads, c.head_dim)
        return Rope.apply(q, pos, table, c.rope, 1.0), qr

    def window_kv(self, x, pos, table):
        kv = rmsnorm(F.linear(act(x), weight(self.wkv, "fp8")), self.kv_norm)
        return fake_quant(Rope.apply(kv[:, None], pos, table, self.cfg.rope, 1.0)[:, 0], FQ8_32)

    def output(self, o, pos, table):
        c = self.cfg
        o = Rope.apply(o, pos, table, c.rope, -1.0)
        o = o.view(-1, c.o_groups, c.heads * c.head_dim // c.o_groups).transpose(0, 1)
        y = torch.bmm(o, weight(self.wo_a, "fp8").view(c.o_groups, c.o_lora, -1).transpose(1, 2))
        y = y.transpose(0, 1).reshape(-1, c.o_groups * c.o_lora)
        return F.linear(act(y), weight(self.wo_b, "fp8"))

    def index_scores(self, x, qr, keys, b):
        c = self.cfg
        table = b.tables[1]
        qi = F.linear(act(qr.detach()), weight(self.indexer.wq_b, "fp8")).view(
            -1, c.index_heads, c.index_dim
        )
        qi = fake_quant(Rope.apply(qi, b.pos.view(-1), table, c.rope, 1.0), FQ4_32)
        wt = F.linear(x.detach(), self.indexer.weights_proj.to(BF))
        s = torch.bmm(qi.view(b.B, b.L * c.index_heads, c.index_dim), keys.transpose(1, 2)).view(
            b.B, b.L, c.index_heads, -1
        )
        kappa = c.index_dim**-0.5 * c.index_heads**-0.5
        return (F.relu(s) * wt.view(b.B, b.L, c.index_heads, 1)).float().sum(2) * kappa

    def forward(self, x, b, shared):
        """x [B*L, hidden] normalised input; shared carries compressed KV, index keys and the
        published selection.
        """
        c, r = self.cfg, self.ratio
        table = b.tables[1 if r else 0]
        pos = b.pos.view(-1)
        q, qr = self.query(x, pos, table)
        kv = self.window_kv(x, pos, table).view(b.B, b.L, -1)
        W = c.window
        n = b.L // W
        blocks = F.pad(kv, (0, 0, W, 0)).view(b.B, n + 1, W, -1)
        wkeys = torch.cat([blocks[:, :-1], blocks[:, 1:]], 2).reshape(b.B * n, 2 * W, -1)
        q = q * c.head_dim**-0.5
        parts = [
            torch.bmm(q.view(b.B * n, W * c.heads, -1), wkeys.transpose(1, 2)).view(
                b.B, b.L, c.heads, 2 * W
            )
            + b.wmask
        ]
        scores = None
        if r:
            if hasattr(self, "compressor"):
                lat = self.compressor(x, b.B, b.L)
                gp = b.gpos[r].view(-1)
                if b.span > c.index_topk or b.distil:
                    k = rmsnorm(F.linear(lat.detach(), self.indexer.wk.to(BF)), self.indexer.k_norm)
                    k = Rope.apply(k[:, None], gp, table, c.rope, 1.0)[:, 0]
                    shared["keys"] = fake_quant(k, FQ4_32).view(b.B, b.L // r, -1)
                shared["ckv"] = fake_quant(
                    Rope.apply(lat[:, None], gp, table, c.rope, 1.0)[:, 0], FQ4_16
                ).view(b.B, b.L // r, -1)
                shared["mask"] = b.cmask[r]
            if hasattr(self, "indexer") and (b.span // r > c.index_topk or b.distil):
                scores = self.index_scores(x, qr, shared["keys"], b)
                ok = b.visible[r]
                if self.layer > c.candidate_source >= 0 and "cand" in shared:
                    ok = ok & shared["cand"]
                masked = scores.detach().masked_fill(~ok, -math.inf)
                if Mode.select:
                    thr = masked.topk(min(c.index_topk, masked.shape[-1]), dim=-1).values[..., -1:]
                    shared["mask"] = torch.where(ok & (masked >= thr), 0.0, NEG).to(BF)[:, :, None]
                if self.layer == c.candidate_source and Mode.select:
                    shared["cand"] = self.candidates(masked, b)
            ckv = shared["ckv"]
            parts.append(
                torch.bmm(q.view(b.B, b.L * c.heads, -1), ckv.transpose(1, 2)).view(
                    b.B, b.L, c.heads, -1
                )
                + shared["mask"]
            )
        parts.append(self.attn_sink.to(BF).view(1, 1, -1, 1).expand(b.B, b.L, c.heads, 1))
        p = torch.softmax(torch.cat(parts, -1), -1)
        o = torch.bmm(p[..., : 2 * W].reshape(b.B * n, W * c.heads, 2 * W), wkeys).view(
            -1, c.heads, c.head_dim
        )
        if r:
            pc = p[..., 2 * W : -1]
            o = o + torch.bmm(pc.reshape(b.B, b.L * c.heads, -1), ckv).view(-1, c.heads, c.head_dim)
            if scores is not None and b.distil:
                self.index_loss(scores, pc, b, r)
        return self.output(o, pos, table)

    def candidates(self, masked, b):
        c = self.cfg
        n = masked.shape[-1]
        blocks = masked.view(b.B, b.L, n // c.cand_size, c.cand_size).amax(-1)
        newest = (
            torch.arange(b.L)[None, :, None] // c.cand_size
            == torch.arange(n // c.cand_size)[None, None]
        )
        blocks = blocks.masked_fill(newest, math.inf)
        thr = blocks.topk(min(c.cand_blocks, blocks.shape[-1]), dim=-1).values[..., -1:]
        return ((blocks >= thr) & (blocks > -math.inf)).repeat_interleave(c.cand_size, -1)

    def index_loss(self, scores, pc, b, r):
        """Cross entropy of the index distribution against the attention mass of this layer
        (summed over heads).
        """
        target = pc.detach().float().sum(2)
        mass = target.sum(-1, keepdim=True)
        logp = torch.log_softmax(scores.masked_fill(~b.visible[r], NEG), -1)
        use = (mass > 0.05).float()
        b.index_losses.append(-(target / (mass + 1e-6) * logp * use).sum() / (use.sum() + 1))
