"""CSA2 attention (spec section 3): window latents, compressor, indexer, attention core, output."""
import numpy as np

from oracle.blocks import Blocks
from oracle.codecs import F64, bf16, fq4_16, fq4_32, fq8_32
from oracle.numerics import rope

TILE = 64  # entries between two roundings of the running maximum in the official code (3.12)


class Attention(Blocks):
    """Also needs frequencies: {has ratio > 0: rope table}."""

    def window_latent(self, x, name, pos, is_compressed):
        """3.2: key and value at once."""
        kv = self.norm(self.dense(x, name + ".wkv"), name + ".kv_norm")
        return self.num.kv(fq8_32, rope(self.num, kv, pos, self.frequencies[is_compressed]))

    def query(self, x, block, pos, is_compressed):
        """3.2: (low-rank query [n, Qr], queries [n, H, Hd] after rope)."""
        c, name = self.c, block + ".attn"
        qr = self.tap(block + ".qr", self.norm(self.dense(x, name + ".wq_a"), name + ".q_norm"))
        q = self.dense(qr, name + ".wq_b").reshape(len(x), c.num_attention_heads, c.head_dim)
        q = rope(self.num, q, pos, self.frequencies[is_compressed])
        return qr, self.tap(block + ".q", q)

    def compress(self, layer, x, p0, context):
        """3.5: (first group, latents [m, Hd] of the groups that this chunk completes)."""
        num, w, ratio = self.num, self.w, self.c.compress_ratios[layer]
        name = f"layers.{layer}.attn.compressor"
        if ratio == 1:
            return p0, self.norm(num.linear(x, w.matrix(name + ".wkv")), name + ".norm")
        k, g = num.mm(x, w.matrix(name + ".wkv")), num.mm(x, w.matrix(name + ".wgate"))
        j0, groups = context.complete_groups(layer, ratio, p0, np.stack([k, g], 1))
        if not len(groups):
            return j0, np.zeros((0, self.c.head_dim), num.dtype)
        k, g = groups[:, :, 0], groups[:, :, 1]
        e = np.exp(g - g.max(1, keepdims=True))
        pooled = ((e / e.sum(1, keepdims=True)) * k).sum(1)
        return j0, self.norm(num.bf(pooled), name + ".norm")

    def publish_groups(self, layer, x, p0, context):
        """3.5 to 3.7: index keys and compressed rows of a kv source; a group's position is that of
        its first token."""
        num, block, name = self.num, f"layers.{layer}", f"layers.{layer}.attn.indexer"
        j0, latent = self.compress(layer, x, p0, context)
        latent = self.tap(block + ".latent", latent)
        pos = (j0 + np.arange(len(latent))) * self.c.compress_ratios[layer]
        keys = self.norm(num.linear(latent, self.w.matrix(name + ".wk")), name + ".k_norm")
        keys = num.kv(fq4_32, rope(num, keys, pos, self.frequencies[True]))
        context.put_keys(layer, j0, self.tap(block + ".index_k", keys))
        rows = num.kv(fq4_16, rope(num, latent, pos, self.frequencies[True]))
        context.put_rows(layer, j0, self.tap(block + ".compressed_kv", rows))

    def index_scores(self, layer, x, qr, pos, keys):
        """3.9: [n, groups], −inf where a group is not complete yet."""
        num, w, c = self.num, self.w, self.c
        block, name = f"layers.{layer}", f"layers.{layer}.attn.indexer"
        q = self.dense(qr, name + ".wq_b").reshape(len(x), c.index_n_heads, c.index_head_dim)
        q = num.kv(fq4_32, rope(num, q, pos, self.frequencies[True]))
        q = self.tap(block + ".index_q", q)
        kappa = num.dtype(c.index_head_dim ** -0.5 * c.index_n_heads ** -0.5)
        weight = num.linear(x, w.matrix(name + ".weights_proj")) * kappa
        weight = self.tap(block + ".index_w", weight)
        dots = np.einsum("nhd,jd->nhj", q.astype(F64), keys.astype(F64))
        dots = np.maximum(num.f(dots), 0)
        score = np.zeros((len(x), len(keys)), num.dtype)
        for h in range(c.index_n_heads):
            score += weight[:, h, None] * dots[:, h]
        visible = (pos + 1) // c.compress_ratios[layer]
        score[np.arange(len(keys))[None] >= visible[:, None]] = -np.inf
        return self.tap(block + ".index_score", score)

    def candidates(self, score, pos, ratio):
        """3.9: [n, groups], true in the best blocks; the newest block is always among them."""
        size, most = self.c.candidate_block_size, self.c.candidate_topk_blocks
        n, groups = score.shape
        blocks = -(-groups // size)
        padded = np.full((n, blocks * size), -np.inf)
        padded[:, :groups] = score
        best = padded.reshape(n, blocks, size).max(-1) if blocks else np.zeros((n, 0))
        keep = np.zeros((n, blocks), bool)
        for i, p in enumerate(pos):
            visible = (p + 1) // ratio
            if visible:
                best[i, (visible - 1) // size] = np.inf
            order = np.argsort(-best[i], kind="stable")[:most]
            keep[i, order[best[i, order] > -np.inf]] = True
        return np.repeat(keep, size, 1)[:, :groups]

    def select(self, score, pos, ratio):
        """3.9: the best groups of each query, ascending; ties: the lower group."""
        lists = []
        for s, p in zip(score, pos):
            order = np.argsort(-s, kind="stable")[:min(self.c.index_topk, (p + 1) // ratio)]
            lists.append(np.sort(order[s[order] > -np.inf]))
        return lists

    def choose_groups(self, layer, x, qr, pos, context, flow):
        """3.9 for an index source. flow: what later layers of this forward read."""
        c, block, ratio = self.c, f"layers.{layer}", self.c.compress_ratios[layer]
        score = self.index_scores(layer, x, qr, pos, context.keys[c.kv_source(layer)])
        if layer == c.candidate_source_layer_id:
            kept = self.candidates(score, pos, ratio)
            flow["candidates"] = self.tap(block + ".candidates", kept)
        elif 0 <= c.candidate_source_layer_id < layer:
            score = np.where(flow["candidates"], score, -np.inf)
        flow["topk"] = self.select(score, pos, ratio)
        padded = [np.pad(t, (0, c.index_topk - len(t)), constant_values=-1) for t in flow["topk"]]
        self.tap(block + ".topk", np.array(padded))

    def attention(self, layer, x, pos, context, flow):
        """Sections 3.2 to 3.13 of a backbone layer, in the order of 3.10."""
        c, block, p0 = self.c, f"layers.{layer}", int(pos[0])
        is_compressed = c.compress_ratios[layer] > 0
        qr, q = self.query(x, block, pos, is_compressed)
        latent = self.window_latent(x, block + ".attn", pos, is_compressed)
        context.put_window(layer, p0, self.tap(block + ".window_kv", latent))
        if layer in c.kv_source_layer_ids:
            self.publish_groups(layer, x, p0, context)
        if layer in c.index_source_layer_ids:
            self.choose_groups(layer, x, qr, pos, context, flow)
        sink = self.num.f(self.w.plain(block + ".attn.attn_sink"))
        o = np.empty_like(q)
        for i, p in enumerate(pos):
            rows = context.window(layer, p)
            if is_compressed:
                selected = context.rows[c.kv_source(layer)][flow["topk"][i]]
                rows = np.concatenate([rows, selected])
            o[i] = self.attend(q[i], rows, sink)
        return self.output(o, block, pos, is_compressed)

    def attend(self, q, rows, sink):
        """3.12 for one query: q [H, Hd], rows [entries, Hd], each key and value at once."""
        num = self.num
        z = num.f(q.astype(F64) @ rows.astype(F64).T) * num.dtype(self.c.head_dim ** -0.5)
        if num.round_probabilities:
            return self.attend_in_tiles(z, rows, sink)
        m = np.maximum(z.max(-1, keepdims=True), num.dtype(-1e30))
        e = np.exp(z - m)
        total = num.f(e.astype(F64).sum(-1, keepdims=True)) + np.exp(sink[:, None] - m)
        return num.bf(num.f(e.astype(F64) @ rows.astype(F64)) / total)

    def attend_in_tiles(self, z, rows, sink):
        """As the official code: probabilities rounded relative to a running maximum."""
        num = self.num
        m, total, acc = np.full((len(z), 1), -1e30, num.dtype), 0, 0
        for t in range(0, len(rows), TILE):
            tile = rows[t:t + TILE].astype(F64)
            new_m = np.maximum(m, z[:, t:t + TILE].max(-1, keepdims=True))
            e, decay = np.exp(z[:, t:t + TILE] - new_m), np.exp(m - new_m)
            acc = num.f(acc * decay + bf16(e).astype(F64) @ tile)
            total = num.f(total * decay + e.astype(F64).sum(-1, keepdims=True))
            m = new_m
        return num.bf(acc / (total + np.exp(sink[:, None] - m)))

    def output(self, o, block, pos, is_compressed):
        """3.13: inverse rope, wo_a by groups without quantised inputs, wo_b."""
        num, c, name = self.num, self.c, block + ".attn"
        o = rope(num, self.tap(block + ".o", o), pos, self.frequencies[is_compressed],
                 inverse=True)
        o = o.reshape(len(o), c.o_groups, -1)
        wo_a = self.w.matrix(name + ".wo_a").reshape(c.o_groups, c.o_lora_rank, -1)
        y = np.concatenate([num.linear(o[:, g], wo_a[g]) for g in range(c.o_groups)], -1)
        return self.dense(self.tap(block + ".wo_a_out", y), name + ".wo_b")
