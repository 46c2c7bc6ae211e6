// One group of compress.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

FATHOM_PER_ISA(
    // k, g: `ratio` rows, `stride_k` and `stride_g` apart; y [n]
    void pool_group(const float* k, int64_t stride_k, const float* g, int64_t stride_g,
                    int64_t ratio, float* y, int64_t n, bool round))
