"""Arithmetics of the oracle (spec section 4.4) and rope (section 3.3).

All long sums (GEMM, mean square, attention) are accumulated in f64 and rounded once, so that a
result does not depend on the order in which an engine adds.
"""
import math

import numpy as np

from oracle.codecs import F32, F64, bf16, fq8_32


class Numerics:
    """Where an arithmetic rounds.

    mode: "reference" rounds to bf16 where the specification does and keeps the rest in f32; "f64"
    rounds nowhere. act_quant, kv_quant: fake-quantisers of GEMM inputs and of caches.
    round_probabilities: as the official code, which section 3.12 leaves to an engine.
    """

    def __init__(self, mode, act_quant=True, kv_quant=True, round_probabilities=False):
        assert mode in ("reference", "f64")
        self.rounds = mode == "reference"
        self.act_quant, self.kv_quant = act_quant, kv_quant
        self.round_probabilities = round_probabilities
        self.dtype = F32 if self.rounds else F64

    def f(self, x):
        """x in the type of values between roundings."""
        return np.asarray(x).astype(self.dtype)

    def bf(self, x):
        """x after a rounding point."""
        return bf16(x) if self.rounds else np.asarray(x, F64)

    def kv(self, quantise, x):
        return quantise(x) if self.kv_quant else x

    def mm(self, x, weight):
        """x [..., K] · weight [N, K]ᵀ, not rounded to bf16."""
        return self.f(np.asarray(x, F64) @ np.asarray(weight, F64).T)

    def linear(self, x, weight, bias=None):
        """bf16 in, wide sums with the bias in them, bf16 out."""
        y = np.asarray(x, F64) @ weight.T
        return self.bf(self.f(y if bias is None else y + bias))

    def qlinear(self, x, weight):
        """Section 4.3: activations quantised, weight dequantised. Every scale is a power of two,
        so this is Σ_kb (Σ q_a·q_w)·(s_a·s_w) without its f32 roundings."""
        return self.linear(fq8_32(x) if self.act_quant else x, weight)

    def rms(self, x, weight, eps):
        """RMSNorm with one rounding at the end (section 2.2)."""
        return self.bf(self.f(weight) * (self.f(x) * self.rsqrt(self.mean_square(x) +
                                                               self.dtype(eps))))

    def mean_square(self, x):
        return self.f(np.mean(np.square(np.asarray(x, F64)), -1, keepdims=True))

    def rsqrt(self, v):
        return self.f(1.0 / np.sqrt(v.astype(F64)))

    def sigmoid(self, x):
        with np.errstate(over="ignore"):
            return (1 / (1 + np.exp(-self.f(x)))).astype(self.dtype)

    def silu(self, x):
        return self.f(x) * self.sigmoid(x)


# The arithmetics of the golden folders by the names that tests/golden/v41-tiny/README.md gives.
ARITHMETICS = {
    "official": Numerics("reference", round_probabilities=True),
    "unrounded_p": Numerics("reference"),
    "f32": Numerics("f64"),
    "smooth": Numerics("f64", act_quant=False, kv_quant=False),
}


def rope_frequencies(rotary_dim, theta, yarn=None):
    """f_i for i below rotary_dim/2. Every step is rounded to f32; the power is the correctly
    rounded one, which NumPy's own f32 power is not."""
    powers = [F32(math.pow(theta, F32(i) / F32(rotary_dim))) for i in range(0, rotary_dim, 2)]
    f = F32(1) / np.array(powers)
    if yarn is None:
        return f

    def pair_of(turns):
        length = yarn["original_max_position_embeddings"]
        return rotary_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))
    low = max(math.floor(pair_of(yarn["beta_fast"])), 0)
    high = min(math.ceil(pair_of(yarn["beta_slow"])), rotary_dim - 1)
    ramp = (np.arange(rotary_dim // 2, dtype=F32) - F32(low)) / F32(max(high - low, 1e-3))
    t = np.clip(ramp, F32(0), F32(1))
    return f / F32(yarn["factor"]) * t + f * (F32(1) - t)


def rope(num, x, positions, frequencies, inverse=False):
    """Turns adjacent pairs of the last channels of x [n, ..., C] by f32(f32(p)·f_i)."""
    rotary_dim = 2 * len(frequencies)
    angle = np.asarray(positions).astype(F32)[:, None] * frequencies.astype(F32)[None]
    angle = angle.astype(F64)
    shape = (len(angle),) + (1,) * (x.ndim - 2) + (rotary_dim // 2,)
    cos = num.f(np.cos(angle)).reshape(shape)
    sin = num.f(-np.sin(angle) if inverse else np.sin(angle)).reshape(shape)
    x = num.f(x)
    a, b = x[..., -rotary_dim::2], x[..., -rotary_dim + 1::2]
    out = x.copy()
    out[..., -rotary_dim::2] = num.bf(a * cos - b * sin)
    out[..., -rotary_dim + 1::2] = num.bf(a * sin + b * cos)
    return out
