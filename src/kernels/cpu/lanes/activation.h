// Rows of router.h, expert_ffn.h and elementwise.h; y may be an input.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

FATHOM_PER_ISA(
    // y = sqrt(log(1 + e^(x / temperature))), or x / temperature under the root above 20
    void sqrt_softplus_row(const float* x, float temperature, float* y, int64_t n);
    void sigmoid_row(const float* x, float temperature, float* y, int64_t n);
    void softmax_row(const float* x, float temperature, float* y, int64_t n);
    void swiglu_row(const float* gate, const float* up, float weight, float limit, float* y,
                    int64_t n, bool round);
    void silu_mul_row(const float* gate, const float* up, float* y, int64_t n, bool round);
    void add_row(const float* a, const float* b, float* y, int64_t n, bool round);
    bool is_finite_row(const float* x, int64_t n))
