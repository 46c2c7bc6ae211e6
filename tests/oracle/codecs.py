"""Number formats and fake-quantisers of the checkpoint and the caches (spec sections 3.8 and 9.2).

Codes are what a file stores, values are f32 or f64. Nothing here knows a model or a file.
"""
import math

import numpy as np

F32, F64 = np.float32, np.float64


def bf16(x):
    """f32 -> nearest-even bf16, widened to f32 again."""
    x = np.ascontiguousarray(x, F32)
    bits = x.view(np.uint32)
    with np.errstate(over="ignore"):
        half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        rounded = (bits + half) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, rounded.view(F32))


def bf16_decode(codes):
    return (np.asarray(codes, np.uint16).astype(np.uint32) << np.uint32(16)).view(F32)


def bf16_encode(x):
    return (bf16(x).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _e4m3_value(code):
    sign, exponent, mantissa = code >> 7, (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    value = mantissa * 2.0 ** -9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -value if sign else value


# Value of each code. E4M3 is the "fn" variant: no infinity, 0x7f and 0xff are NaN.
E4M3 = np.array([_e4m3_value(code) for code in range(256)], F32)
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6], F32)
E8M0 = np.array([math.ldexp(1.0, byte - 127) for byte in range(255)] + [math.nan], F64)


def _encode(x, grid, sign_bit):
    """Nearest code of an ascending grid, ties to the even code, saturating; keeps the sign of 0."""
    grid = grid.astype(F64)
    middle = (grid[:-1] + grid[1:]) / 2
    size = np.abs(np.asarray(x, F64))
    code = np.searchsorted(middle, size, side="left")  # exactly in the middle: the lower code
    at_tie = (code < len(middle)) & (middle[np.minimum(code, len(middle) - 1)] == size)
    goes_up = at_tie & (code % 2 == 1)
    return ((code + goes_up) | np.where(np.signbit(x), sign_bit, 0)).astype(np.uint8)


def e4m3_encode(x):
    return _encode(x, E4M3[:127], 128)


def e2m1_encode(x):
    return _encode(x, E2M1[:8], 8)


def fp4_unpack(packed):
    """Bytes [..., K/2] -> codes [..., K]; the low nibble is the even column."""
    packed = np.asarray(packed).view(np.uint8)
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


def fp4_pack(codes):
    """Codes [..., K] -> bytes [..., K/2]."""
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


# The two reciprocals as f32 words: the specification multiplies, it does not divide.
C448 = np.uint32(0x3B124925).view(F32)
C6 = np.uint32(0x3E2AAAAB).view(F32)


def pow2ceil(t):
    """Smallest power of two that is not below t, for normal t > 0."""
    bits = np.ascontiguousarray(t, F32).view(np.uint32)
    exponent = (bits >> 23) & np.uint32(255)
    has_fraction = (bits & np.uint32(0x7FFFFF)) != 0
    return ((exponent + has_fraction) << np.uint32(23)).astype(np.uint32).view(F32)


def e8m0_encode(scale):
    """Powers of two -> E8M0 bytes."""
    return (np.log2(scale.astype(F64)).round().astype(np.int64) + 127).astype(np.uint8)


def _blocks(x, width):
    assert x.shape[-1] % width == 0, f"width {x.shape[-1]} is not a multiple of {width}"
    return x.reshape(*x.shape[:-1], x.shape[-1] // width, width)


def _amax(blocks, floor):
    return np.maximum(np.abs(blocks).max(-1, keepdims=True).astype(F32), F32(floor))


# Each *_parts gives (q on its grid [..., K/n, n], scale [..., K/n, 1]) with value = q·scale.
def fq8_32_parts(x):
    blocks = _blocks(x, 32)
    scale = pow2ceil(_amax(blocks, 1e-4) * C448)
    return E4M3[e4m3_encode(np.clip(blocks / scale, -448, 448))], scale


def fq4_32_parts(x):
    blocks = _blocks(x, 32)
    scale = pow2ceil(_amax(blocks, 6 * 2.0 ** -126) * C6)
    return E2M1[e2m1_encode(np.clip(blocks / scale, -6, 6))], scale


def fq4_16_parts(x):
    blocks = _blocks(x, 16)
    sixth = _amax(blocks, 6 * 2.0 ** -9) / F32(6)
    scale = E4M3[e4m3_encode(np.minimum(sixth, F32(448)))]
    return E2M1[e2m1_encode(np.clip(blocks / scale, -6, 6))], scale


def _fake(parts):
    def quantise(x):
        q, scale = parts(x)
        return (q * scale).astype(x.dtype).reshape(x.shape)
    return quantise


# x -> the nearest values that the format can hold, in x's own type.
fq8_32, fq4_32, fq4_16 = _fake(fq8_32_parts), _fake(fq4_32_parts), _fake(fq4_16_parts)
