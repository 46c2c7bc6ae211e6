// The inner loops of the text attention core (attention.h), for a group of heads that attend one
// list of rows. Scores sum over the head's columns in the order of dot_order.h (one block), values
// over the list in blocks of kValueBlock.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

namespace fathom::kernels::cpu {

constexpr int64_t kValueBlock = 64;  // entries that are summed before they join the total
constexpr int64_t kColumnUnit = 64;  // columns of a row come in multiples of this, zero padded

// z[h][e] = scale · (q_h · row_e)
struct ScoreArgs {
  const float* q_split = nullptr;     // [heads, cols]; layouts as in gemm_kernels.h
  const uint16_t* q_pairs = nullptr;  // [heads, cols]; for VDPBF16PS only
  const void* const* rows = nullptr;  // [entries] of [cols]: bf16 pairs, or f32 split
  int64_t heads = 0;
  int64_t cols = 0;
  int64_t entries = 0;
  float scale = 1;
  float* z = nullptr;
  int64_t z_stride = 0;
};

// total[h] (+)= Σ_e p[h][e] · row_e over at most kValueBlock entries
struct ValueArgs {
  const float* p = nullptr;
  int64_t p_stride = 0;
  const void* const* rows = nullptr;  // [entries] of [cols]: bf16 or f32, in natural order
  int64_t heads = 0;
  int64_t cols = 0;
  int64_t entries = 0;
  float* total = nullptr;  // [heads, cols]
  bool is_first = false;   // total is not initialised yet
};

}  // namespace fathom::kernels::cpu

FATHOM_PER_ISA(void attention_scores_bf16(const cpu::ScoreArgs& args);
               void attention_scores_f32(const cpu::ScoreArgs& args);
               void attention_values_bf16(const cpu::ValueArgs& args);
               void attention_values_f32(const cpu::ValueArgs& args);
               // z[e] becomes exp(z[e] - m), m = max(-1e30, max z); returns their sum plus exp(sink
               // - m). z has room for entries rounded up to 16.
               float attention_softmax(float* z, int64_t entries, float sink);
               // y = total / denominator, rounded if wished
               void attention_finish(const float* total, float denominator, int64_t cols,
                                     bool round, float* y))
