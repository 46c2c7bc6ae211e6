// FP8 and FP4 codes to bf16 bits with their scale applied, in AVX-512 registers. For the AVX-512
// sources of gemm; everything here is static, as they are built with different flags.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace fathom::kernels::cpu {

// What 32 FP8 codes of one scale need. A code's bits moved to bf16 position are a bf16 with the
// exponent counted from 0; `addend` corrects that and applies the scale. Codes with exponent 0 are
// subnormals, whose addend depends on their mantissa: `subnormal`, indexed by the code.
struct Fp8Scale {
  __m512i addend;
  __m512i subnormal;
};

static inline Fp8Scale fp8_scale(uint8_t scale) {
  // bits(m · 2^-9) - (m << 4) - bits(2^-7), for m = 1..7; m = 0 stays 0 and takes no addend.
  alignas(64) static constexpr int16_t kCorrection[32] = {0,
                                                          0x3b00 - 0x10 - 0x3c00,
                                                          0x3b80 - 0x20 - 0x3c00,
                                                          0x3bc0 - 0x30 - 0x3c00,
                                                          -0x40,
                                                          0x20 - 0x50,
                                                          0x40 - 0x60,
                                                          0x60 - 0x70};
  const __m512i addend = _mm512_set1_epi16(static_cast<int16_t>((scale - 127 + 120) * 128));
  const __m512i correction = _mm512_load_si512(kCorrection);
  return {addend, _mm512_mask_add_epi16(correction, 0xfe, correction, addend)};
}

static inline __m512i decode_fp8_32(const uint8_t* codes, const Fp8Scale& scale) {
  const __m512i code =
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
  const __m512i moved =
      _mm512_and_si512(_mm512_slli_epi16(code, 4), _mm512_set1_epi16(static_cast<int16_t>(0x87f0)));
  const __mmask32 is_subnormal = _mm512_testn_epi16_mask(code, _mm512_set1_epi16(0x78));
  const __m512i addend =
      _mm512_mask_permutexvar_epi16(scale.addend, is_subnormal, code, scale.subnormal);
  return _mm512_add_epi16(moved, addend);
}

// The exponents of a group's 4 scales in bf16 position; 8 words a scale, as fp4_position has it.
static inline __m512i fp4_exponents(const uint8_t* scales) {
  const __m512i spread = _mm512_set_epi64(int64_t(0x8003800380038003), int64_t(0x8003800380038003),
                                          int64_t(0x8002800280028002), int64_t(0x8002800280028002),
                                          int64_t(0x8001800180018001), int64_t(0x8001800180018001),
                                          int64_t(0x8000800080008000), int64_t(0x8000800080008000));
  int32_t four;
  __builtin_memcpy(&four, scales, sizeof four);
  const __m512i words = _mm512_shuffle_epi8(_mm512_set1_epi32(four), spread);
  return _mm512_sub_epi16(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(127 * 128));
}

// The same scales as floats' bits, 4 lanes a scale.
static inline __m512i fp4_scales(const uint8_t* scales) {
  const __m512i spread = _mm512_set_epi64(int64_t(0x8080800380808003), int64_t(0x8080800380808003),
                                          int64_t(0x8080800280808002), int64_t(0x8080800280808002),
                                          int64_t(0x8080800180808001), int64_t(0x8080800180808001),
                                          int64_t(0x8080800080808000), int64_t(0x8080800080808000));
  int32_t four;
  __builtin_memcpy(&four, scales, sizeof four);
  return _mm512_slli_epi32(_mm512_shuffle_epi8(_mm512_set1_epi32(four), spread), 23);
}

// Step t of a group, unscaled: the nibbles t of its 32 words. `moved` is the 64 bytes shifted by
// 4t.
static inline __m512i fp4_values_32(__m512i moved) {
  // Twice the 16 values: the index is 5 bits wide and bit 4 belongs to the next nibble.
  alignas(64) static constexpr uint16_t kGrid[32] = {
      0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80,
      0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0, 0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
      0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
  return _mm512_permutexvar_epi16(moved, _mm512_load_si512(kGrid));
}

// The same times the scales.
static inline __m512i decode_fp4_32(__m512i moved, __m512i exponents) {
  const __m512i words = fp4_values_32(moved);
  const __mmask32 is_nonzero = _mm512_test_epi16_mask(moved, _mm512_set1_epi16(7));
  return _mm512_mask_add_epi16(words, is_nonzero, words, exponents);
}

}  // namespace fathom::kernels::cpu
