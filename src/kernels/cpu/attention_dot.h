// The parts of attention that VDPBF16PS does: same bits as the lanes versions where the ranges
// allow it (bf16_dot_is_exact). Only called where gemm_kernels() chose that instruction.
#pragma once

#include <cstdint>

#include "kernels/cpu/dot_order.h"
#include "kernels/cpu/lanes/attention.h"

namespace fathom::kernels::avx512_bf16 {

// Of `entries` rows of `cols` bf16.
cpu::MagnitudeRange magnitude_of_rows(const void* const* rows, int64_t entries, int64_t cols);

void attention_scores_dot(const cpu::ScoreArgs& args);

}  // namespace fathom::kernels::avx512_bf16
