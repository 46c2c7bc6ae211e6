// Rows of hyper_connection.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/per_isa.h"

namespace fathom::kernels::cpu {

struct HcCoefficientsRow {
  const float* m;      // [(2+S)·S] products, already divided by the rms
  const float* base;   // [(2+S)·S]
  const float* scale;  // [3]
  int64_t streams;
  int sinkhorn_iterations;
  float eps;
  float* pre;   // [S]
  float* post;  // [S]
  float* comb;  // [S·S]
};

}  // namespace fathom::kernels::cpu

FATHOM_PER_ISA(
    // dots[i] += Σ_k x[k] · w[i·stride + k] for i in [0, count), k in [0, n): one piece of a longer
    // sum, whose pieces the caller cuts at the same places whatever the batch.
    void add_dots(const float* x, const float* w, int64_t stride, int64_t count, int64_t n,
                  double* dots);
    double sum_of_squares(const float* x, int64_t n);
    void hc_coefficients_row(const cpu::HcCoefficientsRow& row);
    // x [S·n], y [n]
    void hc_collapse_row(const float* x, const float* pre, int64_t streams, float* y, int64_t n,
                         bool round);
    // x and out [S·n]; out may be x
    void hc_expand_row(const float* y, const float* x, const float* post, const float* comb,
                       int64_t streams, float* out, int64_t n, bool round);
    void hc_mean_row(const float* x, int64_t streams, float* y, int64_t n, bool round))
