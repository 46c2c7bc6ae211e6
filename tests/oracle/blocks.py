"""What every block computes: hyper-connections (spec sections 2.3, 2.4), norms, router and experts
(section 4)."""
import numpy as np

from oracle.codecs import F64


def mix_coefficients(num, m, base, scale, streams, iterations, eps):
    """Section 2.3: mixes [n, (2+S)·S] -> (pre [n, S], post [n, S], comb [n, source, target])."""
    pre = num.sigmoid(m[:, :streams] * scale[0] + base[:streams]) + eps
    post_in = m[:, streams:2 * streams] * scale[1] + base[streams:2 * streams]
    post = num.dtype(2) * num.sigmoid(post_in)
    comb = (m[:, 2 * streams:] * scale[2] + base[2 * streams:]).reshape(-1, streams, streams)
    comb = np.exp(comb - comb.max(-1, keepdims=True))
    comb = comb / comb.sum(-1, keepdims=True) + eps
    comb = comb / (comb.sum(-2, keepdims=True) + eps)
    for _ in range(iterations - 1):
        comb = comb / (comb.sum(-1, keepdims=True) + eps)
        comb = comb / (comb.sum(-2, keepdims=True) + eps)
    return pre, post, comb


class Blocks:
    """Base of the model. c: configuration, w: weights, num: arithmetic.

    taps: a dict that collects the named intermediates, or None. The names are those of the golden
    folders and of `fathom verify`.
    """

    def tap(self, name, value):
        if self.taps is not None:
            self.taps[name] = np.array(value)
        return value

    def norm(self, x, name):
        return self.num.rms(x, self.w.plain(name + ".weight"), self.c.rms_norm_eps)

    def dense(self, x, name):
        """A linear layer whose weight is FP8 or FP4: its inputs are quantised."""
        return self.num.qlinear(x, self.w.matrix(name))

    def initial_streams(self, embedding):
        """Section 2.4: all streams equal, and the one-hot that collapses them to the first."""
        streams = self.c.hc_mult
        pre = np.zeros((len(embedding), streams), self.num.dtype)
        pre[:, 0] = 1
        return np.repeat(embedding[:, None], streams, 1), pre

    def mixes(self, streams, name):
        c, num, w = self.c, self.num, self.w
        x = streams.reshape(len(streams), -1)
        rho = num.rsqrt(num.mean_square(x) + num.dtype(c.rms_norm_eps))
        m = num.mm(x, w.plain(name + "_fn")) * rho
        base, scale = num.f(w.plain(name + "_base")), num.f(w.plain(name + "_scale"))
        mix = mix_coefficients(num, m, base, scale, c.hc_mult, c.hc_sinkhorn_iters,
                               num.dtype(c.hc_eps))
        return [self.tap(f"{name}.{part}", v) for part, v in zip(("pre", "post", "comb"), mix)]

    def collapse(self, streams, pre):
        u = pre[:, 0, None] * streams[:, 0]
        for s in range(1, self.c.hc_mult):
            u = u + pre[:, s, None] * streams[:, s]
        return self.num.bf(u)

    def expand(self, y, streams, post, comb):
        """out_k = post[k]·y + Σ_j comb[j][k]·X_j; j is the source stream."""
        mixed = comb[:, 0, :, None] * streams[:, 0, None]
        for j in range(1, self.c.hc_mult):
            mixed = mixed + comb[:, j, :, None] * streams[:, j, None]
        return self.num.bf(post[:, :, None] * y[:, None] + mixed)

    def block(self, name, streams, pre, attention, experts, is_picture):
        """Section 0: one layer or DSpark stage. experts: (how many, how many a token)."""
        pre_attn, post, comb = self.mixes(streams, name + ".hc_attn")
        x = self.norm(self.collapse(streams, pre), name + ".attn_norm")
        attn_out = self.tap(name + ".attn_out", attention(self.tap(name + ".attn_norm", x)))
        streams = self.tap(name + ".x_mid", self.expand(attn_out, streams, post, comb))
        pre_ffn, post, comb = self.mixes(streams, name + ".hc_ffn")
        x = self.norm(self.collapse(streams, pre_attn), name + ".ffn_norm")
        ffn_out = self.moe(self.tap(name + ".ffn_norm", x), name, experts, is_picture)
        streams = self.expand(self.tap(name + ".ffn_out", ffn_out), streams, post, comb)
        return self.tap(name + ".x_out", streams), pre_ffn

    def router_scores(self, x, name):
        num, kind = self.num, self.c.scoring_func
        t = num.mm(x, self.w.plain(name + ".ffn.gate.weight")) / num.dtype(self.c.gate_temp)
        if kind == "sqrtsoftplus":
            return np.sqrt(np.where(t > 20, t, np.log1p(np.exp(np.minimum(t, num.dtype(20))))))
        if kind == "sigmoid":
            return num.sigmoid(t)
        assert kind == "softmax", kind
        e = np.exp(t - t.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def route(self, x, name, topk, is_picture):
        """Section 4.1: (expert ids [n, A], weights [n, A]); the bias only selects."""
        num, c, w = self.num, self.c, self.w
        scores = self.tap(name + ".router.scores", self.router_scores(x, name))
        bias = np.where(is_picture[:, None], num.f(w.plain(name + ".ffn.gate.bias_vl")),
                        num.f(w.plain(name + ".ffn.gate.bias")))
        ids = np.argsort(-(scores + bias), -1, kind="stable")[:, :topk]
        weights = np.take_along_axis(scores, ids, -1)
        if c.norm_topk_prob and topk > 1:
            weights = weights / (weights.sum(-1, keepdims=True) + num.dtype(1e-20))
        weights = weights * num.dtype(c.routed_scaling_factor)
        return self.tap(name + ".router.ids", ids), self.tap(name + ".router.weights", weights)

    def expert(self, x, name, weight):
        """Section 4.2; weight: of the router, 1 for the shared expert."""
        num, limit = self.num, self.c.swiglu_limit
        gate, up = self.dense(x, name + ".w1"), self.dense(x, name + ".w3")
        if limit > 0:
            gate = np.minimum(gate, num.dtype(limit))
            up = np.clip(up, -num.dtype(limit), num.dtype(limit))
        return self.dense(num.bf(weight * (num.silu(gate) * up)), name + ".w2")

    def moe(self, x, name, experts, is_picture):
        num = self.num
        count, topk = experts
        ids, weights = self.route(x, name, topk, is_picture)
        y = np.zeros(x.shape, num.dtype)
        for e in range(count):  # in ascending order
            token, place = np.nonzero(ids == e)
            if len(token):
                weight = weights[token, place][:, None]
                y[token] += self.expert(x[token], f"{name}.ffn.experts.{e}", weight)
        shared = self.expert(x, name + ".ffn.shared_experts", num.dtype(1))
        return num.bf(y + self.tap(name + ".shared_out", shared))
