// Packing, decoding and tiles of `linear` for AVX2.
#include <immintrin.h>

#include "kernels/cpu/gemm_portable.h"
#include "kernels/cpu/gemm_tile.h"

namespace fathom::kernels::cpu {
namespace avx2 {
namespace {

__m256i load_words(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

void store_words(uint16_t* p, __m256i words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
}

__m256 odd_of(__m256i pairs) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000));
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, high));
}

__m256 even_of(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}

struct Lanes {
  __m256 low;
  __m256 high;

  static Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Lanes load_pairs_odd(const uint16_t* p) {
    return {odd_of(load_words(p)), odd_of(load_words(p + 16))};
  }
  static Lanes load_pairs_even(const uint16_t* p) {
    return {even_of(load_words(p)), even_of(load_words(p + 16))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  friend Lanes operator+(Lanes a, Lanes b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  friend Lanes operator*(Lanes a, Lanes b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
};

void split_from_pairs(const uint16_t* pairs, int64_t count, float* out) {
  for (int64_t s = 0; s < count; s += kDotStep) {
    Lanes::load_pairs_odd(pairs + s).store(out + s);
    Lanes::load_pairs_even(pairs + s).store(out + s + kDotLanes);
  }
}

void pack_split(const float* x, int64_t count, float* out) {
  // Of 8 values, the odd ones to the upper half and the even ones to the lower.
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  int64_t k = 0;
  for (; k + kDotStep <= count; k += kDotStep) {
    for (int64_t i = 0; i < kDotStep; i += 8) {
      const __m256 sorted = _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + k + i), order);
      _mm_storeu_ps(out + k + i / 2, _mm256_extractf128_ps(sorted, 1));
      _mm_storeu_ps(out + k + kDotLanes + i / 2, _mm256_castps256_ps128(sorted));
    }
  }
  if (k < count) portable::pack_split(x + k, count - k, out + k);
}

void decode_fp8(const DecodeArgs& args) {
  const auto* codes = static_cast<const uint8_t*>(args.codes);
  // m · 2^-9 for m = 0..7, the codes with exponent 0.
  const __m256i subnormal =
      _mm256_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60, 0, 0x3b00,
                        0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i sign_exponent_mantissa = _mm256_set1_epi16(static_cast<int16_t>(0x87f0));
  const int64_t whole = args.count / kDotStep * kDotStep;
  for (int64_t k = 0; k < whole; k += 16) {
    const int exponent = (args.scales[k / 32] - 127) * 128;
    const __m256i table = _mm256_andnot_si256(
        _mm256_cmpeq_epi16(subnormal, zero),
        _mm256_add_epi16(subnormal, _mm256_set1_epi16(static_cast<int16_t>(exponent))));
    const __m256i code =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + k)));
    const __m256i shifted = _mm256_and_si256(_mm256_slli_epi16(code, 4), sign_exponent_mantissa);
    const __m256i normal =
        _mm256_add_epi16(shifted, _mm256_set1_epi16(static_cast<int16_t>(exponent + 120 * 128)));
    // Byte indexes 2m, 2m + 1 of word m.
    const __m256i mantissa = _mm256_and_si256(code, _mm256_set1_epi16(7));
    const __m256i index = _mm256_add_epi16(_mm256_mullo_epi16(mantissa, _mm256_set1_epi16(0x0202)),
                                           _mm256_set1_epi16(0x0100));
    const __m256i small =
        _mm256_or_si256(_mm256_shuffle_epi8(table, index),
                        _mm256_and_si256(shifted, _mm256_set1_epi16(static_cast<int16_t>(0x8000))));
    const __m256i is_subnormal =
        _mm256_cmpeq_epi16(_mm256_and_si256(code, _mm256_set1_epi16(0x78)), zero);
    store_words(args.out + k, _mm256_blendv_epi8(normal, small, is_subnormal));
  }
  if (whole < args.count)
    portable::decode_fp8({.codes = codes + whole,
                          .scales = args.scales + whole / 32,
                          .count = args.count - whole,
                          .out = args.out + whole});
}

// 16 words whose low nibbles are E2M1 codes, times the scale exponents, to bf16 bits.
__m256i decode_nibbles(__m256i words, __m256i exponent) {
  // The two bytes of each value's bf16 bits. Index bytes with bit 7 set give 0.
  const __m256i low_bytes = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 0, -128, -64, 0, 64, -128, -64, 0, 0, -128, -64, 0, 64, -128, -64));
  const __m256i high_bytes = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 63, 63, 63, 64, 64, 64, 64, -128, -65, -65, -65, -64, -64, -64, -64));
  const __m256i code = _mm256_and_si256(words, _mm256_set1_epi16(15));
  const __m256i index = _mm256_or_si256(code, _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
  const __m256i bits =
      _mm256_or_si256(_mm256_shuffle_epi8(low_bytes, index),
                      _mm256_slli_epi16(_mm256_shuffle_epi8(high_bytes, index), 8));
  const __m256i is_zero =
      _mm256_cmpeq_epi16(_mm256_and_si256(code, _mm256_set1_epi16(7)), _mm256_setzero_si256());
  return _mm256_add_epi16(bits, _mm256_andnot_si256(is_zero, exponent));
}

__m128i exponent_words(uint8_t scale) {
  return _mm_set1_epi16(static_cast<int16_t>((scale - 127) * 128));
}

void decode_fp4(const DecodeArgs& args) {
  const auto* codes = static_cast<const uint8_t*>(args.codes);
  const int64_t whole = args.count / kFp4Group * kFp4Group;
  for (int64_t k = 0; k < whole; k += kFp4Group) {
    for (int64_t half = 0; half < 2; ++half) {
      const uint8_t* scales = args.scales + k / 32 + 2 * half;
      const __m256i exponent =
          _mm256_set_m128i(exponent_words(scales[1]), exponent_words(scales[0]));
      const __m256i bytes =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + k / 2 + 32 * half));
      for (int t = 0; t < 4; ++t)
        store_words(args.out + k + 32 * t + 16 * half,
                    decode_nibbles(_mm256_srli_epi16(bytes, 4 * t), exponent));
    }
  }
  if (whole < args.count)
    portable::decode_fp4({.codes = codes + whole / 2,
                          .scales = args.scales + whole / 32,
                          .count = args.count - whole,
                          .out = args.out + whole});
}

void tile_pairs(const TileArgs<uint16_t>& args) {
  multiply_strip<Lanes, PairsLoad<Lanes>, uint16_t, 2, 2>(args);
}

void tile_split(const TileArgs<float>& args) {
  multiply_strip<Lanes, SplitLoad<Lanes>, float, 2, 2>(args);
}

}  // namespace
}  // namespace avx2

const GemmKernels& gemm_kernels_avx2() {
  static constexpr GemmKernels kKernels = {
      .pack_pairs = portable::pack_pairs,  // the compiler's SSE2 is fast enough beside the tiles
      .pack_split = avx2::pack_split,
      .pack_split_fp4 = portable::pack_split_fp4,
      .reorder_fp4 = portable::reorder_fp4,
      .split_from_pairs = avx2::split_from_pairs,
      .decode_bf16 = portable::decode_bf16,
      .decode_fp8 = avx2::decode_fp8,
      .decode_fp4 = avx2::decode_fp4,
      .tile_pairs = avx2::tile_pairs,
      .tile_split = avx2::tile_split,
      .tile_pairs_dot = nullptr,
      .gemv_fp8_dot = nullptr,
      .gemv_fp4_dot = nullptr,
      .finish = portable::finish,
  };
  return kKernels;
}

}  // namespace fathom::kernels::cpu
