// Portable pieces that the vector versions use for ragged ends.
#pragma once

#include "kernels/cpu/gemm_kernels.h"

namespace fathom::kernels::cpu::portable {

bool pack_pairs(const float* x, int64_t count, uint16_t* out, MagnitudeRange& range);
void pack_split(const float* x, int64_t count, float* out);
void pack_split_fp4(const float* x, int64_t count, float* out);
void reorder_fp4(uint16_t* pairs, int64_t count);
void split_from_pairs(const uint16_t* pairs, int64_t count, float* out);
void decode_bf16(const DecodeArgs& args, MagnitudeRange& range);
void decode_fp8(const DecodeArgs& args);
void decode_fp4(const DecodeArgs& args);
void finish(const FinishArgs& args);

}  // namespace fathom::kernels::cpu::portable
