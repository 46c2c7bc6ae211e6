// Tiles of `linear` by VDPBF16PS: twice the rate of f32 arithmetic and the same bits, in the range
// that dot_order.h derives.
// GCC 12 takes the undefined operand inside its own AVX-512 intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/cpu/gemm_decode_avx512.h"
#include "kernels/cpu/gemm_portable.h"

namespace fathom::kernels::cpu {
namespace avx512_bf16 {
namespace {

__m512bh load_pairs(const uint16_t* p) {
  return (__m512bh)_mm512_loadu_si512(p);
}

template <int kRows, int kCols>
void multiply_tile(const TileArgs<uint16_t>& args, int64_t x_row, int64_t w_row) {
  __m512 lane[kRows][kCols];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kCols; ++c) lane[r][c] = _mm512_setzero_ps();
  const uint16_t* x = args.x + x_row * args.x_stride;
  const uint16_t* w = args.w + w_row * args.w_stride;
  for (int64_t s = 0; s < args.steps; ++s, x += kDotStep, w += kDotStep) {
    __m512bh w_pairs[kCols];
    for (int c = 0; c < kCols; ++c) w_pairs[c] = load_pairs(w + c * args.w_stride);
    for (int r = 0; r < kRows; ++r) {
      const __m512bh x_pairs = load_pairs(x + r * args.x_stride);
      for (int c = 0; c < kCols; ++c)
        lane[r][c] = _mm512_dpbf16_ps(lane[r][c], x_pairs, w_pairs[c]);
    }
  }
  float* total = args.total + (x_row * args.total_stride + w_row) * kDotLanes;
  if (args.is_first) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kCols; ++c)
        _mm512_storeu_ps(total + (r * args.total_stride + c) * kDotLanes, lane[r][c]);
    return;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kCols; ++c) {
      float* sum = total + (r * args.total_stride + c) * kDotLanes;
      _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), lane[r][c]));
    }
  }
}

// All weight rows of the block with kRows rows of x, which stay in L1 meanwhile.
template <int kRows>
void multiply_rows(const TileArgs<uint16_t>& args, int64_t x_row) {
  int64_t w_row = 0;
  for (; w_row + 4 <= args.w_rows; w_row += 4) multiply_tile<kRows, 4>(args, x_row, w_row);
  for (; w_row < args.w_rows; ++w_row) multiply_tile<kRows, 1>(args, x_row, w_row);
}

void tile_pairs_dot(const TileArgs<uint16_t>& args) {
  // 6 × 4 sums, 4 weights and one x: 29 of 32 registers.
  int64_t x_row = 0;
  for (; x_row + 6 <= args.x_rows; x_row += 6) multiply_rows<6>(args, x_row);
  if (x_row + 4 <= args.x_rows) {
    multiply_rows<4>(args, x_row);
    x_row += 4;
  }
  if (x_row + 2 <= args.x_rows) {
    multiply_rows<2>(args, x_row);
    x_row += 2;
  }
  if (x_row < args.x_rows) multiply_rows<1>(args, x_row);
}

// How far ahead of its use a GEMV fetches codes: the same place in the next rows.
void prefetch_next_rows(const GemvArgs& args, int64_t row, int64_t byte) {
  const uint8_t* next = args.codes + (row + kGemvRows) * args.codes_stride + byte;
  _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
}

// One K block of kRows rows: lane sums of the whole steps (FP4: groups).
template <int kRows>
void gemv_fp8_block(const GemvArgs& args, int64_t first, int64_t count, __m512* lane) {
  for (int64_t k = first; k + kDotStep <= first + count; k += kDotStep) {
    const Fp8Scale scale = fp8_scale(args.scales[k / 32]);
    const __m512bh x = load_pairs(args.x + k);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      if (k % 64 == 0) prefetch_next_rows(args, r, k);
      const __m512i w = decode_fp8_32(args.codes + r * args.codes_stride + k, scale);
      lane[r] = _mm512_dpbf16_ps(lane[r], x, (__m512bh)w);
    }
  }
}

// The weights stay unscaled: instead the sums are kept divided by the scale of the group at hand,
// which one multiplication by a power of two a group keeps up. Rounding does not notice, as long
// as nothing leaves the normal range (fp4_gemv_is_exact).
template <int kRows>
void gemv_fp4_block(const GemvArgs& args, int64_t first, int64_t count, __m512* lane) {
  const __m512i one = _mm512_castps_si512(_mm512_set1_ps(1));
  __m512i scale[kRows];  // bits of the powers of two that `lane` was divided by
  for (int r = 0; r < kRows; ++r) scale[r] = one;
  for (int64_t k = first; k + kFp4Group <= first + count; k += kFp4Group) {
    const __m512bh x[4] = {load_pairs(args.x + k), load_pairs(args.x + k + 32),
                           load_pairs(args.x + k + 64), load_pairs(args.x + k + 96)};
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      prefetch_next_rows(args, r, k / 2);
      const __m512i next = fp4_scales(args.scales + r * args.scales_stride + k / 32);
      const __m512i ratio = _mm512_add_epi32(_mm512_sub_epi32(scale[r], next), one);
      lane[r] = _mm512_mul_ps(lane[r], _mm512_castsi512_ps(ratio));
      scale[r] = next;
      const __m512i bytes = _mm512_loadu_si512(args.codes + r * args.codes_stride + k / 2);
      const __m512i moved[4] = {bytes, _mm512_srli_epi16(bytes, 4), _mm512_srli_epi16(bytes, 8),
                                _mm512_srli_epi16(bytes, 12)};
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t)
        lane[r] = _mm512_dpbf16_ps(lane[r], x[t], (__m512bh)fp4_values_32(moved[t]));
    }
  }
  for (int r = 0; r < kRows; ++r) lane[r] = _mm512_mul_ps(lane[r], _mm512_castsi512_ps(scale[r]));
}

// The ragged end of row r, decoded the plain way: fewer than kFp4Group values.
__m512 gemv_rest(const GemvArgs& args, bool is_fp4, int64_t r, int64_t first, __m512 lane) {
  alignas(64) uint16_t pairs[kFp4Group];
  const int64_t count = args.cols - first;
  const DecodeArgs rest{.codes = args.codes + r * args.codes_stride + (is_fp4 ? first / 2 : first),
                        .scales = args.scales + r * args.scales_stride + first / 32,
                        .count = count,
                        .out = pairs};
  is_fp4 ? portable::decode_fp4(rest) : portable::decode_fp8(rest);
  const int64_t padded = is_fp4 ? kFp4Group : kDotStep;
  for (int64_t k = 0; k < padded; k += kDotStep)
    lane = _mm512_dpbf16_ps(lane, load_pairs(args.x + first + k), load_pairs(pairs + k));
  return lane;
}

template <bool kIsFp4, int kRows>
void gemv_rows(const GemvArgs& args) {
  constexpr int64_t kWhole = kIsFp4 ? kFp4Group : kDotStep;
  __m512 total[kRows];
  for (int64_t first = 0; first < args.cols; first += kDotBlock) {
    const int64_t rest = args.cols - first;
    const int64_t count = rest < kDotBlock ? rest : kDotBlock;
    __m512 lane[kRows];
    for (int r = 0; r < kRows; ++r) lane[r] = _mm512_setzero_ps();
    if constexpr (kIsFp4) {
      gemv_fp4_block<kRows>(args, first, count, lane);
    } else {
      gemv_fp8_block<kRows>(args, first, count, lane);
    }
    for (int r = 0; r < kRows; ++r) {
      if (count % kWhole != 0)
        lane[r] = gemv_rest(args, kIsFp4, r, first + count / kWhole * kWhole, lane[r]);
      total[r] = first == 0 ? lane[r] : _mm512_add_ps(total[r], lane[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(args.total + r * kDotLanes, total[r]);
}

template <bool kIsFp4>
void gemv(const GemvArgs& args) {
  if (args.rows == kGemvRows) return gemv_rows<kIsFp4, kGemvRows>(args);
  for (int64_t r = 0; r < args.rows; ++r) {
    GemvArgs one = args;
    one.codes += r * args.codes_stride;
    one.scales += r * args.scales_stride;
    one.total += r * kDotLanes;
    gemv_rows<kIsFp4, 1>(one);
  }
}

}  // namespace
}  // namespace avx512_bf16

const GemmKernels& gemm_kernels_avx512_bf16() {
  static const GemmKernels kernels = [] {
    GemmKernels with_dot = gemm_kernels_avx512();
    with_dot.tile_pairs_dot = avx512_bf16::tile_pairs_dot;
    with_dot.gemv_fp8_dot = avx512_bf16::gemv<false>;
    with_dot.gemv_fp4_dot = avx512_bf16::gemv<true>;
    return with_dot;
  }();
  return kernels;
}

}  // namespace fathom::kernels::cpu
