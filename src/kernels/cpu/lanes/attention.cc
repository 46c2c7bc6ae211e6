#include "kernels/cpu/lanes/attention.h"

#include "kernels/cpu/math16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

using cpu::ScoreArgs;
using cpu::ValueArgs;

// Heads and rows (or vectors of 16 columns) of a tile, as registers allow.
#if FATHOM_ISA_BITS == 512
constexpr int kTileHeads = 4;
constexpr int kTileOthers = 4;
#else
constexpr int kTileHeads = 2;
constexpr int kTileOthers = 2;
#endif

FATHOM_INLINE I16 load_words(const uint16_t* p) {
  I16 words;
  __builtin_memcpy(&words, p, sizeof words);
  return words;
}

// The 16 odd and the 16 even values of a step of 32.
FATHOM_INLINE F16 odd_of(const uint16_t* step) {
  return float_of(load_words(step) & splat_int(static_cast<int32_t>(0xffff0000u)));
}
FATHOM_INLINE F16 even_of(const uint16_t* step) {
  return float_of(shl<16>(load_words(step)));
}
FATHOM_INLINE F16 odd_of(const float* split_step) {
  return load(split_step);
}
FATHOM_INLINE F16 even_of(const float* split_step) {
  return load(split_step + 16);
}

FATHOM_INLINE F16 load_values(const uint16_t* p) {
  return load_bf16(p);
}
FATHOM_INLINE F16 load_values(const float* p) {
  return load(p);
}

template <typename T, int kHeads, int kRows>
FATHOM_INLINE void score_tile(const ScoreArgs& args, int64_t head, int64_t entry) {
  F16 sum[kHeads][kRows];
  for (int h = 0; h < kHeads; ++h)
    for (int e = 0; e < kRows; ++e) sum[h][e] = splat(0.0f);
  const float* q = args.q_split + head * args.cols;
  const T* row[kRows];
  for (int e = 0; e < kRows; ++e) row[e] = static_cast<const T*>(args.rows[entry + e]);
  for (int64_t d = 0; d < args.cols; d += 32) {
    F16 k[kRows];
    for (int e = 0; e < kRows; ++e) k[e] = odd_of(row[e] + d);
    for (int h = 0; h < kHeads; ++h) {
      const F16 x = odd_of(q + h * args.cols + d);
      for (int e = 0; e < kRows; ++e) sum[h][e] = sum[h][e] + x * k[e];
    }
    for (int e = 0; e < kRows; ++e) k[e] = even_of(row[e] + d);
    for (int h = 0; h < kHeads; ++h) {
      const F16 x = even_of(q + h * args.cols + d);
      for (int e = 0; e < kRows; ++e) sum[h][e] = sum[h][e] + x * k[e];
    }
  }
  for (int h = 0; h < kHeads; ++h)
    for (int e = 0; e < kRows; ++e)
      args.z[(head + h) * args.z_stride + entry + e] = sum_of(sum[h][e]) * args.scale;
}

template <typename T>
FATHOM_INLINE void scores(const ScoreArgs& args) {
  int64_t entry = 0;
  for (; entry + kTileOthers <= args.entries; entry += kTileOthers) {
    int64_t head = 0;
    for (; head + kTileHeads <= args.heads; head += kTileHeads)
      score_tile<T, kTileHeads, kTileOthers>(args, head, entry);
    for (; head < args.heads; ++head) score_tile<T, 1, kTileOthers>(args, head, entry);
  }
  for (; entry < args.entries; ++entry)
    for (int64_t head = 0; head < args.heads; ++head) score_tile<T, 1, 1>(args, head, entry);
}

template <typename T, int kHeads>
FATHOM_INLINE void value_tile(const ValueArgs& args, int64_t head, int64_t col) {
  F16 sum[kHeads][kTileOthers];
  for (int h = 0; h < kHeads; ++h)
    for (int v = 0; v < kTileOthers; ++v) sum[h][v] = splat(0.0f);
  const float* p = args.p + head * args.p_stride;
  for (int64_t e = 0; e < args.entries; ++e) {
    const T* row = static_cast<const T*>(args.rows[e]) + col;
    F16 values[kTileOthers];
    for (int v = 0; v < kTileOthers; ++v) values[v] = load_values(row + 16 * v);
    for (int h = 0; h < kHeads; ++h) {
      const F16 weight = splat(p[h * args.p_stride + e]);
      for (int v = 0; v < kTileOthers; ++v) sum[h][v] = sum[h][v] + weight * values[v];
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kTileOthers; ++v) {
      float* total = args.total + (head + h) * args.cols + col + 16 * v;
      store(total, args.is_first ? sum[h][v] : load(total) + sum[h][v]);
    }
  }
}

// Columns outside, so that a block's rows stay in L1 for all heads.
template <typename T>
FATHOM_INLINE void values(const ValueArgs& args) {
  for (int64_t col = 0; col < args.cols; col += 16 * kTileOthers) {
    int64_t head = 0;
    for (; head + kTileHeads <= args.heads; head += kTileHeads)
      value_tile<T, kTileHeads>(args, head, col);
    for (; head < args.heads; ++head) value_tile<T, 1>(args, head, col);
  }
}

}  // namespace

void attention_scores_bf16(const ScoreArgs& args) {
  scores<uint16_t>(args);
}
void attention_scores_f32(const ScoreArgs& args) {
  scores<float>(args);
}
void attention_values_bf16(const ValueArgs& args) {
  values<uint16_t>(args);
}
void attention_values_f32(const ValueArgs& args) {
  values<float>(args);
}

float attention_softmax(float* z, int64_t entries, float sink) {
  float best = -1e30f;
  for (int64_t e = 0; e < entries; ++e) best = z[e] > best ? z[e] : best;
  const F16 m = splat(best);
  F16 sum = splat(0.0f);
  for (int64_t e = 0; e < entries; e += 16) {
    const int64_t count = entries - e;
    F16 p = exp_of(load_some(z + e, count) - m);
    store_some(z + e, p, count);
    if (count < 16) p = load_part(z + e, count);  // lanes past the end count nothing
    sum = sum + p;
  }
  float lanes[16];
  store(lanes, exp_of(splat(sink - best)));
  return sum_of(sum) + lanes[0];
}

void attention_finish(const float* total, float denominator, int64_t cols, bool round, float* y) {
  const F16 divisor = splat(denominator);
  for (int64_t d = 0; d < cols; d += 16)
    store_some(y + d, rounded_if(load_some(total + d, cols - d) / divisor, round), cols - d);
}

}  // namespace fathom::kernels::FATHOM_ISA
