// One expert on the rows that were routed to it, and the activation inside. Spec §4.2.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

//   gate, up  [M, F]  f32
//   weight    [M]     f32       routing weight; empty: 1
//   limit                       up is clamped to ±limit, gate to <= limit; <= 0: no clamp
//   y         [M, F]  f32  out  weight · (silu(gate) · up); may be gate or up
// Against ref: rel 1e-6 (own exp).
struct SwigluArgs {
  MatrixView<const float> gate;
  MatrixView<const float> up;
  std::span<const float> weight = {};
  float limit = 0;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void swiglu(const Context& context, const SwigluArgs& args);

// y[row[i]] += w2 · swiglu(w1 · x[row[i]], w3 · x[row[i]], weight[i]) for each i.
//   x       [T, D]       f32       with quantise_activations: already through fq8_32 by the caller
//   row     [M]          i32       distinct rows of x and y; empty: all T rows in order
//   weight  [M] or empty f32       empty: 1 (the shared expert)
//   w1, w3  [F, D], w2 [D, F]      gate, up, down
//   y       [T, D]       f32  in/out  the sum so far. Experts in ascending id, the shared one last
// Projections are rounded (round_bf16) and w2's input quantised (quantise_activations) as the
// policy says; the sum in y is not rounded: `add` (elementwise.h) does that at its end.
struct ExpertFfnArgs {
  MatrixView<const float> x;
  std::span<const int32_t> row = {};
  std::span<const float> weight = {};
  WeightView w1;
  WeightView w2;
  WeightView w3;
  float limit = 0;
  bool quantise_activations = false;
  bool round_bf16 = false;
  MatrixView<float> y;
};
void expert_ffn(const Context& context, const ExpertFfnArgs& args);

// expert_ffn() of each in order, to the same bits. Of a few rows, all experts go to the threads
// together.
void expert_ffns(const Context& context, std::span<const ExpertFfnArgs> experts);

namespace ref {
void swiglu(const SwigluArgs& args);
void expert_ffn(const ExpertFfnArgs& args);
}  // namespace ref

}  // namespace fathom::kernels
