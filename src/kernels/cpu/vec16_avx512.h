// vec16.h on AVX-512 F, BW, DQ and VL. Not included by anyone else.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace fathom::kernels::FATHOM_ISA {

struct F16 {
  __m512 v;
};
struct I16 {
  __m512i v;
};
struct M16 {
  __mmask16 m;
};

FATHOM_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
FATHOM_INLINE F16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
FATHOM_INLINE F16 load_part(const float* p, int64_t n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
}
FATHOM_INLINE void store(float* p, F16 x) {
  _mm512_storeu_ps(p, x.v);
}
FATHOM_INLINE void store_part(float* p, F16 x, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x.v);
}
FATHOM_INLINE F16 splat(float x) {
  return {_mm512_set1_ps(x)};
}
FATHOM_INLINE F16 operator+(F16 a, F16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
FATHOM_INLINE F16 operator-(F16 a, F16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
FATHOM_INLINE F16 operator*(F16 a, F16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
FATHOM_INLINE F16 operator/(F16 a, F16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
FATHOM_INLINE F16 max_of(F16 a, F16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
FATHOM_INLINE F16 min_of(F16 a, F16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
FATHOM_INLINE F16 swap_pairs(F16 x) {
  return {_mm512_permute_ps(x.v, 0xb1)};
}
FATHOM_INLINE F16 zip_low(F16 a, F16 b) {
  const __m512i from = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return {_mm512_permutex2var_ps(a.v, from, b.v)};
}
FATHOM_INLINE F16 zip_high(F16 a, F16 b) {
  const __m512i from =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {_mm512_permutex2var_ps(a.v, from, b.v)};
}
FATHOM_INLINE F16 sqrt_of(F16 x) {
  return {_mm512_sqrt_ps(x.v)};
}

FATHOM_INLINE I16 splat_int(int32_t x) {
  return {_mm512_set1_epi32(x)};
}
FATHOM_INLINE I16 operator+(I16 a, I16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
FATHOM_INLINE I16 operator-(I16 a, I16 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
FATHOM_INLINE I16 operator&(I16 a, I16 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
FATHOM_INLINE I16 operator|(I16 a, I16 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
template <int n>
FATHOM_INLINE I16 shl(I16 x) {
  return {_mm512_slli_epi32(x.v, n)};
}
template <int n>
FATHOM_INLINE I16 shr(I16 x) {
  return {_mm512_srli_epi32(x.v, n)};
}
template <int n>
FATHOM_INLINE I16 sar(I16 x) {
  return {_mm512_srai_epi32(x.v, n)};
}
FATHOM_INLINE I16 bits_of(F16 x) {
  return {_mm512_castps_si512(x.v)};
}
FATHOM_INLINE F16 float_of(I16 x) {
  return {_mm512_castsi512_ps(x.v)};
}
FATHOM_INLINE F16 to_float(I16 x) {
  return {_mm512_cvtepi32_ps(x.v)};
}
FATHOM_INLINE I16 round_to_int(F16 x) {
  return {_mm512_cvtps_epi32(x.v)};
}

FATHOM_INLINE M16 less(F16 a, F16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
FATHOM_INLINE M16 equal_int(I16 a, I16 b) {
  return {_mm512_cmpeq_epi32_mask(a.v, b.v)};
}
FATHOM_INLINE F16 select(M16 m, F16 a, F16 b) {
  return {_mm512_mask_blend_ps(m.m, b.v, a.v)};
}
FATHOM_INLINE I16 select(M16 m, I16 a, I16 b) {
  return {_mm512_mask_blend_epi32(m.m, b.v, a.v)};
}

FATHOM_INLINE F16 widen(__m256i x) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16))};
}
FATHOM_INLINE F16 load_bf16(const uint16_t* p) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FATHOM_INLINE F16 load_bf16_part(const uint16_t* p, int64_t n) {
  return widen(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}
// The high halves: x must be bf16-representable (round_bf16 first).
FATHOM_INLINE void store_bf16_bits(uint16_t* p, F16 x) {
  const __m512i high = _mm512_srli_epi32(_mm512_castps_si512(x.v), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(high));
}

FATHOM_INLINE float sum_of(F16 x) {
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

struct Sum16 {
  __m512d low = _mm512_setzero_pd();   // lanes 0..7
  __m512d high = _mm512_setzero_pd();  // lanes 8..15

  FATHOM_INLINE_MEMBER void add_product(F16 a, F16 b) {
    low = _mm512_fmadd_pd(low_half(a), low_half(b), low);
    high = _mm512_fmadd_pd(high_half(a), high_half(b), high);
  }
  FATHOM_INLINE_MEMBER void add_square(F16 a) { add_product(a, a); }
  FATHOM_INLINE_MEMBER double total() const {
    const __m512d a = _mm512_add_pd(low, high);
    const __m256d b = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    const __m128d c = _mm_add_pd(_mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));
    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
  }

 private:
  static FATHOM_INLINE_MEMBER __m512d low_half(F16 x) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x.v));
  }
  static FATHOM_INLINE_MEMBER __m512d high_half(F16 x) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1));
  }
};

}  // namespace fathom::kernels::FATHOM_ISA
