// vec16.h in plain C++, for any CPU; the compiler makes what it can of the loops. Not included by
// anyone else.
#pragma once

#include <cstdint>

namespace fathom::kernels::FATHOM_ISA {

struct F16 {
  float v[16];
};
struct I16 {
  int32_t v[16];
};
struct M16 {
  bool v[16];
};

// out.v[i] = EXPRESSION(i) for each lane.
#define FATHOM_LANES(Type, expression)                \
  Type out;                                           \
  for (int i = 0; i < 16; ++i) out.v[i] = expression; \
  return out

FATHOM_INLINE F16 load(const float* p) {
  FATHOM_LANES(F16, p[i]);
}
FATHOM_INLINE F16 load_part(const float* p, int64_t n) {
  FATHOM_LANES(F16, i < n ? p[i] : 0.0f);
}
FATHOM_INLINE void store(float* p, F16 x) {
  for (int i = 0; i < 16; ++i) p[i] = x.v[i];
}
FATHOM_INLINE void store_part(float* p, F16 x, int64_t n) {
  for (int64_t i = 0; i < n && i < 16; ++i) p[i] = x.v[i];
}
FATHOM_INLINE F16 splat(float x) {
  FATHOM_LANES(F16, x);
}
FATHOM_INLINE F16 operator+(F16 a, F16 b) {
  FATHOM_LANES(F16, a.v[i] + b.v[i]);
}
FATHOM_INLINE F16 operator-(F16 a, F16 b) {
  FATHOM_LANES(F16, a.v[i] - b.v[i]);
}
FATHOM_INLINE F16 operator*(F16 a, F16 b) {
  FATHOM_LANES(F16, a.v[i] * b.v[i]);
}
FATHOM_INLINE F16 operator/(F16 a, F16 b) {
  FATHOM_LANES(F16, a.v[i] / b.v[i]);
}
FATHOM_INLINE F16 max_of(F16 a, F16 b) {
  FATHOM_LANES(F16, a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
FATHOM_INLINE F16 min_of(F16 a, F16 b) {
  FATHOM_LANES(F16, a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
FATHOM_INLINE F16 swap_pairs(F16 x) {
  FATHOM_LANES(F16, x.v[i ^ 1]);
}
FATHOM_INLINE F16 zip_low(F16 a, F16 b) {
  FATHOM_LANES(F16, i % 2 == 0 ? a.v[i / 2] : b.v[i / 2]);
}
FATHOM_INLINE F16 zip_high(F16 a, F16 b) {
  FATHOM_LANES(F16, i % 2 == 0 ? a.v[8 + i / 2] : b.v[8 + i / 2]);
}
FATHOM_INLINE F16 sqrt_of(F16 x) {
  FATHOM_LANES(F16, __builtin_sqrtf(x.v[i]));
}

// Unsigned arithmetic: lanes wrap as the vector instructions do.
FATHOM_INLINE uint32_t lane_bits(int32_t x) {
  return static_cast<uint32_t>(x);
}
FATHOM_INLINE int32_t lane_of(uint32_t x) {
  return static_cast<int32_t>(x);
}

FATHOM_INLINE I16 splat_int(int32_t x) {
  FATHOM_LANES(I16, x);
}
FATHOM_INLINE I16 operator+(I16 a, I16 b) {
  FATHOM_LANES(I16, lane_of(lane_bits(a.v[i]) + lane_bits(b.v[i])));
}
FATHOM_INLINE I16 operator-(I16 a, I16 b) {
  FATHOM_LANES(I16, lane_of(lane_bits(a.v[i]) - lane_bits(b.v[i])));
}
FATHOM_INLINE I16 operator&(I16 a, I16 b) {
  FATHOM_LANES(I16, a.v[i] & b.v[i]);
}
FATHOM_INLINE I16 operator|(I16 a, I16 b) {
  FATHOM_LANES(I16, a.v[i] | b.v[i]);
}
template <int n>
FATHOM_INLINE I16 shl(I16 x) {
  FATHOM_LANES(I16, lane_of(lane_bits(x.v[i]) << n));
}
template <int n>
FATHOM_INLINE I16 shr(I16 x) {
  FATHOM_LANES(I16, lane_of(lane_bits(x.v[i]) >> n));
}
template <int n>
FATHOM_INLINE I16 sar(I16 x) {
  FATHOM_LANES(I16, x.v[i] >> n);
}
FATHOM_INLINE I16 bits_of(F16 x) {
  FATHOM_LANES(I16, __builtin_bit_cast(int32_t, x.v[i]));
}
FATHOM_INLINE F16 float_of(I16 x) {
  FATHOM_LANES(F16, __builtin_bit_cast(float, x.v[i]));
}
FATHOM_INLINE F16 to_float(I16 x) {
  FATHOM_LANES(F16, static_cast<float>(x.v[i]));
}
// |x| < 2^22, or NaN, whose result does not matter: adding 1.5 · 2^23 rounds to nearest even.
FATHOM_INLINE I16 round_to_int(F16 x) {
  FATHOM_LANES(I16, __builtin_bit_cast(int32_t, x.v[i] + 12582912.0f) - 0x4b400000);
}

FATHOM_INLINE M16 less(F16 a, F16 b) {
  FATHOM_LANES(M16, a.v[i] < b.v[i]);
}
FATHOM_INLINE M16 equal_int(I16 a, I16 b) {
  FATHOM_LANES(M16, a.v[i] == b.v[i]);
}
FATHOM_INLINE F16 select(M16 m, F16 a, F16 b) {
  FATHOM_LANES(F16, m.v[i] ? a.v[i] : b.v[i]);
}
FATHOM_INLINE I16 select(M16 m, I16 a, I16 b) {
  FATHOM_LANES(I16, m.v[i] ? a.v[i] : b.v[i]);
}

FATHOM_INLINE float widen_lane(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}
FATHOM_INLINE F16 load_bf16(const uint16_t* p) {
  FATHOM_LANES(F16, widen_lane(p[i]));
}
FATHOM_INLINE F16 load_bf16_part(const uint16_t* p, int64_t n) {
  FATHOM_LANES(F16, i < n ? widen_lane(p[i]) : 0.0f);
}
// The high halves: x must be bf16-representable (round_bf16 first).
FATHOM_INLINE void store_bf16_bits(uint16_t* p, F16 x) {
  const I16 bits = bits_of(x);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<uint16_t>(lane_bits(bits.v[i]) >> 16);
}

template <typename T>
FATHOM_INLINE T tree_sum(const T (&lanes)[16]) {
  T sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = lanes[i];
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
  return sums[0];
}

FATHOM_INLINE float sum_of(F16 x) {
  return tree_sum(x.v);
}

struct Sum16 {
  double lane[16] = {};

  // A product of two floats is exact in double, so this equals the fma of the other ISAs.
  FATHOM_INLINE_MEMBER void add_product(F16 a, F16 b) {
    for (int i = 0; i < 16; ++i)
      lane[i] = lane[i] + static_cast<double>(a.v[i]) * static_cast<double>(b.v[i]);
  }
  FATHOM_INLINE_MEMBER void add_square(F16 a) { add_product(a, a); }
  FATHOM_INLINE_MEMBER double total() const { return tree_sum(lane); }
};

#undef FATHOM_LANES

}  // namespace fathom::kernels::FATHOM_ISA
