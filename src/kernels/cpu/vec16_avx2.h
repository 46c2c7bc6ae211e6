// vec16.h on AVX2 and FMA: two registers a vector. Not included by anyone else.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace fathom::kernels::FATHOM_ISA {

struct F16 {
  __m256 a, b;  // lanes 0..7, 8..15
};
struct I16 {
  __m256i a, b;
};
struct M16 {
  __m256 a, b;  // all ones or zero per lane
};

// Lanes below n of a half: the mask of maskload and maskstore.
FATHOM_INLINE __m256i first_lanes(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
FATHOM_INLINE F16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
FATHOM_INLINE F16 load_part(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
FATHOM_INLINE void store(float* p, F16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
FATHOM_INLINE void store_part(float* p, F16 x, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), x.a);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), x.b);
}
FATHOM_INLINE F16 splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
FATHOM_INLINE F16 operator+(F16 x, F16 y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
FATHOM_INLINE F16 operator-(F16 x, F16 y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
FATHOM_INLINE F16 operator*(F16 x, F16 y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
FATHOM_INLINE F16 operator/(F16 x, F16 y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
FATHOM_INLINE F16 max_of(F16 x, F16 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
FATHOM_INLINE F16 min_of(F16 x, F16 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
FATHOM_INLINE F16 swap_pairs(F16 x) {
  return {_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)};
}
// Interleaves eight lanes with eight: unpack works inside 128-bit halves, so they are joined after.
FATHOM_INLINE F16 zip_halves(__m256 a, __m256 b) {
  const __m256 low = _mm256_unpacklo_ps(a, b);
  const __m256 high = _mm256_unpackhi_ps(a, b);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
FATHOM_INLINE F16 zip_low(F16 x, F16 y) {
  return zip_halves(x.a, y.a);
}
FATHOM_INLINE F16 zip_high(F16 x, F16 y) {
  return zip_halves(x.b, y.b);
}
FATHOM_INLINE F16 sqrt_of(F16 x) {
  return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)};
}

FATHOM_INLINE I16 splat_int(int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
FATHOM_INLINE I16 operator+(I16 x, I16 y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
FATHOM_INLINE I16 operator-(I16 x, I16 y) {
  return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
FATHOM_INLINE I16 operator&(I16 x, I16 y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
FATHOM_INLINE I16 operator|(I16 x, I16 y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
template <int n>
FATHOM_INLINE I16 shl(I16 x) {
  return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
template <int n>
FATHOM_INLINE I16 shr(I16 x) {
  return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)};
}
template <int n>
FATHOM_INLINE I16 sar(I16 x) {
  return {_mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n)};
}
FATHOM_INLINE I16 bits_of(F16 x) {
  return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
FATHOM_INLINE F16 float_of(I16 x) {
  return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
FATHOM_INLINE F16 to_float(I16 x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
FATHOM_INLINE I16 round_to_int(F16 x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}

FATHOM_INLINE M16 less(F16 x, F16 y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
FATHOM_INLINE M16 equal_int(I16 x, I16 y) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(x.a, y.a)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(x.b, y.b))};
}
FATHOM_INLINE F16 select(M16 m, F16 x, F16 y) {
  return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)};
}
FATHOM_INLINE I16 select(M16 m, I16 x, I16 y) {
  return bits_of(select(m, float_of(x), float_of(y)));
}

FATHOM_INLINE __m256 widen_half(const uint16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
FATHOM_INLINE F16 load_bf16(const uint16_t* p) {
  return {widen_half(p), widen_half(p + 8)};
}
FATHOM_INLINE F16 load_bf16_part(const uint16_t* p, int64_t n) {
  uint16_t lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load_bf16(lanes);
}
// The high halves: x must be bf16-representable (round_bf16 first).
FATHOM_INLINE void store_bf16_bits(uint16_t* p, F16 x) {
  const __m256i a = _mm256_srli_epi32(_mm256_castps_si256(x.a), 16);
  const __m256i b = _mm256_srli_epi32(_mm256_castps_si256(x.b), 16);
  // packus works inside 128-bit halves; the permutation puts the four quarters in order.
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed);
}

FATHOM_INLINE float sum_of(F16 x) {
  const __m256 a = _mm256_add_ps(x.a, x.b);
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

struct Sum16 {
  __m256d quarter[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                        _mm256_setzero_pd()};  // four lanes each

  FATHOM_INLINE_MEMBER void add_product(F16 x, F16 y) {
    add_half(&quarter[0], x.a, y.a);
    add_half(&quarter[2], x.b, y.b);
  }
  FATHOM_INLINE_MEMBER void add_square(F16 x) { add_product(x, x); }
  FATHOM_INLINE_MEMBER double total() const {
    const __m256d a = _mm256_add_pd(quarter[0], quarter[2]);
    const __m256d b = _mm256_add_pd(quarter[1], quarter[3]);
    const __m256d ab = _mm256_add_pd(a, b);
    const __m128d c = _mm_add_pd(_mm256_castpd256_pd128(ab), _mm256_extractf128_pd(ab, 1));
    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
  }

 private:
  static FATHOM_INLINE_MEMBER void add_half(__m256d* to, __m256 x, __m256 y) {
    to[0] = _mm256_fmadd_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                            _mm256_cvtps_pd(_mm256_castps256_ps128(y)), to[0]);
    to[1] = _mm256_fmadd_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)),
                            _mm256_cvtps_pd(_mm256_extractf128_ps(y, 1)), to[1]);
  }
};

}  // namespace fathom::kernels::FATHOM_ISA
