// Packing, decoding and tiles of `linear` for AVX-512 F, BW, DQ, VL.
// GCC 12 takes the undefined operand inside its own AVX-512 intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/cpu/gemm_decode_avx512.h"
#include "kernels/cpu/gemm_portable.h"
#include "kernels/cpu/gemm_tile.h"
#include "kernels/cpu/lane_sums_avx512.h"

namespace fathom::kernels::cpu {
namespace avx512 {
namespace {

struct Lanes {
  __m512 value;

  static Lanes zero() { return {_mm512_setzero_ps()}; }
  static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Lanes load_pairs_odd(const uint16_t* p) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), high))};
  }
  static Lanes load_pairs_even(const uint16_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, value); }
  friend Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.value, b.value)}; }
  friend Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.value, b.value)}; }
};

// Running range of |v| > 0 over vectors of bf16 bits. Zeros wrap to the largest word in `smallest`.
struct RangeVector {
  __m512i smallest = _mm512_set1_epi16(-1);
  __m512i largest = _mm512_setzero_si512();

  void include(__m512i words) {
    const __m512i magnitude = _mm512_and_si512(words, _mm512_set1_epi16(0x7fff));
    smallest = _mm512_min_epu16(smallest, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
    largest = _mm512_max_epu16(largest, magnitude);
  }
  void merge_into(MagnitudeRange& range) const {
    alignas(64) uint16_t low[32];
    alignas(64) uint16_t high[32];
    _mm512_store_si512(low, smallest);
    _mm512_store_si512(high, largest);
    for (int i = 0; i < 32; ++i) {
      const auto word = static_cast<uint16_t>(low[i] + 1);  // 0: only zeros were seen
      if (word != 0 && word < range.smallest) range.smallest = word;
      if (high[i] > range.largest) range.largest = high[i];
    }
  }
};

bool pack_pairs(const float* x, int64_t count, uint16_t* out, MagnitudeRange& range) {
  RangeVector seen;
  __m512i lost = _mm512_setzero_si512();
  int64_t k = 0;
  for (; k + kDotStep <= count; k += kDotStep) {
    const __m512i low = _mm512_loadu_si512(x + k);
    const __m512i high = _mm512_loadu_si512(x + k + 16);
    lost = _mm512_or_si512(lost, _mm512_or_si512(low, high));
    const __m512i words = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm512_cvtepi32_epi16(_mm512_srli_epi32(low, 16))),
        _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 16)), 1);
    seen.include(words);
    _mm512_storeu_si512(out + k, words);
  }
  seen.merge_into(range);
  const bool is_exact = _mm512_test_epi32_mask(lost, _mm512_set1_epi32(0xffff)) == 0;
  if (k == count) return is_exact;
  return portable::pack_pairs(x + k, count - k, out + k, range) && is_exact;
}

void pack_split(const float* x, int64_t count, float* out) {
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512i even = _mm512_sub_epi32(odd, _mm512_set1_epi32(1));
  int64_t k = 0;
  for (; k + kDotStep <= count; k += kDotStep) {
    const __m512 low = _mm512_loadu_ps(x + k);
    const __m512 high = _mm512_loadu_ps(x + k + 16);
    _mm512_storeu_ps(out + k, _mm512_permutex2var_ps(low, odd, high));
    _mm512_storeu_ps(out + k + 16, _mm512_permutex2var_ps(low, even, high));
  }
  if (k < count) portable::pack_split(x + k, count - k, out + k);
}

void reorder_fp4(uint16_t* pairs, int64_t count) {
  const __m512i even =
      _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                       24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(1));
  for (int64_t k = 0; k < count; k += kFp4Group) {
    uint16_t* p = pairs + k;
    const __m512i a = _mm512_loadu_si512(p);
    const __m512i b = _mm512_loadu_si512(p + 32);
    const __m512i c = _mm512_loadu_si512(p + 64);
    const __m512i d = _mm512_loadu_si512(p + 96);
    const __m512i even_low = _mm512_permutex2var_epi16(a, even, b);
    const __m512i odd_low = _mm512_permutex2var_epi16(a, odd, b);
    const __m512i even_high = _mm512_permutex2var_epi16(c, even, d);
    const __m512i odd_high = _mm512_permutex2var_epi16(c, odd, d);
    _mm512_storeu_si512(p, _mm512_permutex2var_epi16(even_low, even, even_high));
    _mm512_storeu_si512(p + 32, _mm512_permutex2var_epi16(odd_low, even, odd_high));
    _mm512_storeu_si512(p + 64, _mm512_permutex2var_epi16(even_low, odd, even_high));
    _mm512_storeu_si512(p + 96, _mm512_permutex2var_epi16(odd_low, odd, odd_high));
  }
}

void split_from_pairs(const uint16_t* pairs, int64_t count, float* out) {
  for (int64_t s = 0; s < count; s += kDotStep) {
    Lanes::load_pairs_odd(pairs + s).store(out + s);
    Lanes::load_pairs_even(pairs + s).store(out + s + kDotLanes);
  }
}

void prefetch(const void* base, int64_t byte) {
  if (base) _mm_prefetch(static_cast<const char*>(base) + byte, _MM_HINT_T0);
}

void decode_bf16(const DecodeArgs& args, MagnitudeRange& range) {
  const auto* codes = static_cast<const uint16_t*>(args.codes);
  RangeVector seen;
  int64_t k = 0;
  for (; k + kDotStep <= args.count; k += kDotStep) {
    prefetch(args.prefetch, k * 2);
    const __m512i words = _mm512_loadu_si512(codes + k);
    seen.include(words);
    _mm512_storeu_si512(args.out + k, words);
  }
  seen.merge_into(range);
  if (k < args.count)
    portable::decode_bf16({.codes = codes + k, .count = args.count - k, .out = args.out + k},
                          range);
}

void decode_fp8(const DecodeArgs& args) {
  const auto* codes = static_cast<const uint8_t*>(args.codes);
  int64_t k = 0;
  for (; k + kDotStep <= args.count; k += kDotStep) {
    if (k % 64 == 0) prefetch(args.prefetch, k);
    _mm512_storeu_si512(args.out + k, decode_fp8_32(codes + k, fp8_scale(args.scales[k / 32])));
  }
  if (k < args.count)
    portable::decode_fp8({.codes = codes + k,
                          .scales = args.scales + k / 32,
                          .count = args.count - k,
                          .out = args.out + k});
}

void decode_fp4(const DecodeArgs& args) {
  const auto* codes = static_cast<const uint8_t*>(args.codes);
  int64_t k = 0;
  for (; k + kFp4Group <= args.count; k += kFp4Group) {
    prefetch(args.prefetch, k / 2);
    const __m512i exponents = fp4_exponents(args.scales + k / 32);
    const __m512i bytes = _mm512_loadu_si512(codes + k / 2);
    uint16_t* out = args.out + k;
    _mm512_storeu_si512(out, decode_fp4_32(bytes, exponents));
    _mm512_storeu_si512(out + 32, decode_fp4_32(_mm512_srli_epi16(bytes, 4), exponents));
    _mm512_storeu_si512(out + 64, decode_fp4_32(_mm512_srli_epi16(bytes, 8), exponents));
    _mm512_storeu_si512(out + 96, decode_fp4_32(_mm512_srli_epi16(bytes, 12), exponents));
  }
  if (k < args.count)
    portable::decode_fp4({.codes = codes + k / 2,
                          .scales = args.scales + k / 32,
                          .count = args.count - k,
                          .out = args.out + k});
}

void tile_pairs(const TileArgs<uint16_t>& args) {
  multiply_strip<Lanes, PairsLoad<Lanes>, uint16_t, 6, 4>(args);
}

void tile_split(const TileArgs<float>& args) {
  multiply_strip<Lanes, SplitLoad<Lanes>, float, 6, 4>(args);
}

// Nearest bf16, ties to even; a NaN stays one.
__m512 rounded_to_bf16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i carried = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __m512i rounded = _mm512_mask_mov_epi32(carried, is_nan, quiet);
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  return _mm512_castsi512_ps(_mm512_and_si512(rounded, high));
}

void finish(const FinishArgs& args) {
  for (int64_t n = 0; n < args.count; n += 16) {
    const int64_t count = args.count - n < 16 ? args.count - n : 16;
    const auto present = static_cast<__mmask16>((1u << count) - 1);
    __m512 lanes[16];
    for (int i = 0; i < 16; ++i)
      lanes[i] =
          i < count ? _mm512_loadu_ps(args.total + (n + i) * kDotLanes) : _mm512_setzero_ps();
    __m512 y = sum_lanes_of_16(lanes);
    if (args.bias) y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(present, args.bias + n));
    _mm512_mask_storeu_ps(args.y + n, present, args.round_bf16 ? rounded_to_bf16(y) : y);
  }
}

}  // namespace
}  // namespace avx512

const GemmKernels& gemm_kernels_avx512() {
  static constexpr GemmKernels kKernels = {
      .pack_pairs = avx512::pack_pairs,
      .pack_split = avx512::pack_split,
      .pack_split_fp4 = portable::pack_split_fp4,
      .reorder_fp4 = avx512::reorder_fp4,
      .split_from_pairs = avx512::split_from_pairs,
      .decode_bf16 = avx512::decode_bf16,
      .decode_fp8 = avx512::decode_fp8,
      .decode_fp4 = avx512::decode_fp4,
      .tile_pairs = avx512::tile_pairs,
      .tile_split = avx512::tile_split,
      .tile_pairs_dot = nullptr,
      .gemv_fp8_dot = nullptr,
      .gemv_fp4_dot = nullptr,
      .finish = avx512::finish,
  };
  return kKernels;
}

}  // namespace fathom::kernels::cpu
