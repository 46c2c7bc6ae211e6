// GCC 12 takes the undefined operand inside its own AVX-512 intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/cpu/attention_dot.h"
#include "kernels/cpu/lane_sums_avx512.h"

namespace fathom::kernels::avx512_bf16 {
namespace {

__m512bh load_pairs(const void* p) {
  return (__m512bh)_mm512_loadu_si512(p);
}

// Four heads times four rows: 16 sums, one reduction.
void score_tile(const cpu::ScoreArgs& args, int64_t head, int64_t entry) {
  __m512 sum[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_setzero_ps();
  const uint16_t* q = args.q_pairs + head * args.cols;
  const uint16_t* row[4];
  for (int e = 0; e < 4; ++e) row[e] = static_cast<const uint16_t*>(args.rows[entry + e]);
  for (int64_t d = 0; d < args.cols; d += cpu::kDotStep) {
    __m512bh k[4];
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) k[e] = load_pairs(row[e] + d);
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const __m512bh x = load_pairs(q + h * args.cols + d);
#pragma GCC unroll 4
      for (int e = 0; e < 4; ++e) sum[4 * h + e] = _mm512_dpbf16_ps(sum[4 * h + e], x, k[e]);
    }
  }
  const __m512 z = _mm512_mul_ps(cpu::sum_lanes_of_16(sum), _mm512_set1_ps(args.scale));
  float* out = args.z + head * args.z_stride + entry;
  _mm_storeu_ps(out, _mm512_castps512_ps128(z));
  _mm_storeu_ps(out + args.z_stride, _mm512_extractf32x4_ps(z, 1));
  _mm_storeu_ps(out + 2 * args.z_stride, _mm512_extractf32x4_ps(z, 2));
  _mm_storeu_ps(out + 3 * args.z_stride, _mm512_extractf32x4_ps(z, 3));
}

void score_one(const cpu::ScoreArgs& args, int64_t head, int64_t entry) {
  __m512 sum[16];
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_setzero_ps();
  const uint16_t* q = args.q_pairs + head * args.cols;
  const auto* row = static_cast<const uint16_t*>(args.rows[entry]);
  for (int64_t d = 0; d < args.cols; d += cpu::kDotStep)
    sum[0] = _mm512_dpbf16_ps(sum[0], load_pairs(q + d), load_pairs(row + d));
  args.z[head * args.z_stride + entry] = _mm512_cvtss_f32(cpu::sum_lanes_of_16(sum)) * args.scale;
}

}  // namespace

cpu::MagnitudeRange magnitude_of_rows(const void* const* rows, int64_t entries, int64_t cols) {
  const __m512i one = _mm512_set1_epi16(1);
  __m512i smallest = _mm512_set1_epi16(-1);  // of |v| - 1: zeros wrap to the largest word
  __m512i largest = _mm512_setzero_si512();
  for (int64_t e = 0; e < entries; ++e) {
    const auto* row = static_cast<const uint16_t*>(rows[e]);
    for (int64_t d = 0; d < cols; d += 32) {
      const __m512i magnitude =
          _mm512_and_si512(_mm512_loadu_si512(row + d), _mm512_set1_epi16(0x7fff));
      smallest = _mm512_min_epu16(smallest, _mm512_sub_epi16(magnitude, one));
      largest = _mm512_max_epu16(largest, magnitude);
    }
  }
  alignas(64) uint16_t low[32];
  alignas(64) uint16_t high[32];
  _mm512_store_si512(low, smallest);
  _mm512_store_si512(high, largest);
  cpu::MagnitudeRange range;
  for (int i = 0; i < 32; ++i) {
    const auto word = static_cast<uint16_t>(low[i] + 1);
    if (word != 0 && word < range.smallest) range.smallest = word;
    if (high[i] > range.largest) range.largest = high[i];
  }
  return range;
}

void attention_scores_dot(const cpu::ScoreArgs& args) {
  const int64_t tiled_heads = args.heads / 4 * 4;
  const int64_t tiled_entries = args.entries / 4 * 4;
  for (int64_t entry = 0; entry < tiled_entries; entry += 4)
    for (int64_t head = 0; head < tiled_heads; head += 4) score_tile(args, head, entry);
  for (int64_t head = 0; head < args.heads; ++head)
    for (int64_t entry = head < tiled_heads ? tiled_entries : 0; entry < args.entries; ++entry)
      score_one(args, head, entry);
}

}  // namespace fathom::kernels::avx512_bf16
