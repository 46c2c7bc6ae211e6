// Sixteen keys of index_score.h at a time: lane = key.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

FATHOM_PER_ISA(
    // keys_t [dim][16] = `count` keys (1..16), `stride` apart; lanes past them are zero.
    void transpose_keys_f32(const float* keys, int64_t stride, int64_t count, int64_t dim,
                            float* keys_t);
    void transpose_keys_bf16(const uint16_t* keys, int64_t stride, int64_t count, int64_t dim,
                             float* keys_t);
    // keys_t [dim][16]: sixteen keys, transposed. q [heads·dim], weight [heads] with kappa in it.
    // score [16] = Σ_h weight[h] · max(0, q_h · key)
    void index_score_keys(const float* q, const float* weight, const float* keys_t, int64_t heads,
                          int64_t dim, float* score))
