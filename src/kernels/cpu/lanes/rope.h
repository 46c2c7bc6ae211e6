// One row of rope.h: every head of one token.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

FATHOM_PER_ISA(
    // Adjacent pairs. `cosine` and `sine` [rotary] hold cos twice per pair and -sin, +sin.
    void rope_adjacent_row(float* x, int64_t heads, int64_t head_dim, const float* cosine,
                           const float* sine, int64_t rotary, bool round);
    // Half-split pairs. `cosine` and `sine` [rotary / 2].
    void rope_half_split_row(float* x, int64_t heads, int64_t head_dim, const float* cosine,
                             const float* sine, int64_t rotary, bool round))
