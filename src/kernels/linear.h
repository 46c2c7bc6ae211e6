// y = x · Wᵀ (+ bias): every matrix product of the model but attention. Spec §4.3, §4.4.
#pragma once

#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

//   x       [M, K]  f32       row-major; rows may have any stride
//   weight  [N, K]            kBF16, kF32, kF8E4M3 or kI8 (packed FP4), as in tensor/view.h
//   bias    [N]     f32       null: none (a bf16 bias widened). Added before the one rounding
//   y       [M, N]  f32  out  overwritten; must not overlap x
//
// quantise_activations: each row of x goes through fq8_32 first (§3.8); K must be a multiple of 32.
// A caller that feeds one x to several weights may quantise it once (quantise.h) and leave this
// off.
//
// Every weight is used at its exact value (FP8 and FP4 codes times their power of two are exact in
// bf16). Except: the cpu kernels read the NaN codes of E4M3, which no sound checkpoint has, as
// finite numbers, on every ISA. The finite check can't see them; `fathom inspect --deep` does.
// The sum over K has one fixed order, written down in cpu/dot_order.h, whatever M, N, threads and
// ISA, so that a row alone and in a batch gives the same bits. Ref: double sums.
// Against ref: |y - y_ref| <= (K/16 + 6) · 2^-24 · Σ_k |x_k · w_k|, before rounding.
struct LinearArgs {
  MatrixView<const float> x;
  WeightView weight;
  const float* bias = nullptr;
  MatrixView<float> y;
  bool quantise_activations = false;
  bool round_bf16 = false;
};
void linear(const Context& context, const LinearArgs& args);

// linear() of each, to the same bits; all have the same number of rows and none reads another's y.
// Of a few rows they are handed to the threads at once, which small weights need: a token makes
// hundreds of products, and waiting for the last thread costs as much as a small one.
void linear_together(const Context& context, std::span<const LinearArgs> all);

// Rows [first, first + count) of a weight, for grouped projections (wo_a). With FP8 `first` must be
// a multiple of 32, as the scales are.
WeightView weight_rows(const WeightView& weight, int64_t first, int64_t count);

namespace ref {
void linear(const LinearArgs& args);
}

}  // namespace fathom::kernels
