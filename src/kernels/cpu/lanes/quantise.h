// One row of quantise.h; n is a multiple of the block, y may be x.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

FATHOM_PER_ISA(void fp8_block32_row(const float* x, float* y, int64_t n);
               void fp4_block32_row(const float* x, float* y, int64_t n);
               void fp4_block16_row(const float* x, float* y, int64_t n))
