"""The DSpark drafter: three window-only stages that guess a block of tokens at once."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from layers import Block
from config import NEG, act, param, weight
from kernels import BF, Collapse, rmsnorm


class DSpark(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.stages = nn.ModuleList(
            Block(cfg, i, 0, cfg.draft_experts, cfg.draft_active) for i in range(cfg.mtp)
        )
        self.main_proj = param(cfg.hidden, cfg.hidden * len(cfg.targets))
        self.main_norm = nn.Parameter(torch.ones(cfg.hidden))
        self.norm = nn.Parameter(torch.ones(cfg.hidden))
        self.markov_embed = param(cfg.vocab, cfg.markov, std=0.1)
        self.markov_head = param(cfg.vocab, cfg.markov, std=0.1)
        self.conf = param(1, cfg.hidden + cfg.markov, std=0.02)

    def forward(self, model, taps, pos, doc, anchors):
        """taps [N, 3*hidden] of packed tokens (flat), anchors: flat indices of p. Returns h
        [A,5,hidden] of the draft blocks.
        """
        c = self.cfg
        A, K, W = len(anchors), c.block, c.window
        main = rmsnorm(F.linear(act(taps), weight(self.main_proj, "fp8")), self.main_norm)
        off = anchors[:, None] - torch.arange(W - 1, -1, -1)[None]
        ok = (off >= 0) & (doc[off.clamp(min=0)] == doc[anchors][:, None])
        off = off.clamp(min=0)
        mask = torch.cat([torch.where(ok, 0.0, NEG), torch.zeros(A, K)], 1).to(BF)[:, None, None]
        bpos = (
            (pos[anchors][:, None] + 1 + torch.arange(K)[None])
            .to(torch.int32)
            .reshape(-1)
            .contiguous()
        )
        ids = torch.full((A, K), c.noise)
        ids[:, 0] = model.flat_ids[anchors + 1]
        X = (
            F.embedding(ids.view(-1), model.embed.detach())
            .to(BF)[:, None]
            .expand(-1, 4, -1)
            .contiguous()
        )
        pre = one_hot_pre(A * K)
        table = model.tables[0]
        for st in self.stages:
            at = st.attn
            window = at.window_kv(main, pos.to(torch.int32).contiguous(), table)

            def attend(x):
                q, _ = at.query(x, bpos, table)
                own = at.window_kv(x, bpos, table).view(A, K, -1)
                keys = torch.cat([window[off], own], 1)
                s = (
                    torch.bmm(
                        q.view(A, K * c.heads, -1) * c.head_dim**-0.5, keys.transpose(1, 2)
                    ).view(A, K, c.heads, -1)
                    + mask
                )
                s = torch.cat(
                    [s, at.attn_sink.to(BF).view(1, 1, -1, 1).expand(A, K, c.heads, 1)], -1
                )
                p = torch.softmax(s, -1)[..., :-1].reshape(A, K * c.heads, -1)
                return at.output(torch.bmm(p, keys).view(A * K, c.heads, -1), bpos, table)

            X, pre = st(X, pre, attend, None)
        return Collapse.apply(X, pre).view(A, K, -1)


def one_hot_pre(n):
    p = torch.zeros(n, 4)
    p[:, 0] = 1
    return p
