// Rows of rms_norm.h and engram.h. Contracts there; n channels.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

FATHOM_PER_ISA(
    // y may be x.
    void rms_norm_row(const float* x, const float* weight, float* y, int64_t n, float eps,
                      bool round);
    // The gate of one stream; `weight_q` and `weight_k` are multiplied first.
    float engram_gate_stream(const float* x, const float* key, const float* weight_q,
                             const float* weight_k, int64_t n, float eps);
    // x += gate · value
    void engram_inject_row(float* x, const float* value, float gate, int64_t n, bool round))
