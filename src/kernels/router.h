// Router of the mixture of experts: scores from logits, selection by biased score, weights. Spec
// §4.1.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

enum class RouterScore { kSqrtSoftplus, kSigmoid, kSoftmax };

//   logits     [T, E]  f32       gate.weight · x, from `linear` without rounding
//   bias       [E]     f32       for text rows
//   bias_image [E]     f32       for rows of a picture span; may be empty when is_image is
//   is_image   [T]     u8        empty: all rows are text
//   score      [T, E]  f32  out  unbiased
//   expert     [T, A]  i32  out  best score + bias first, ties to the lower expert
//   weight     [T, A]  f32  out  score · routed_scale, over the sum of the chosen if normalise and
//   A > 1
// Against ref: equal experts unless two biased scores differ by less than 1e-6; scores rel 1e-6.
struct RouterArgs {
  MatrixView<const float> logits;
  RouterScore kind = RouterScore::kSqrtSoftplus;
  float temperature = 1;
  std::span<const float> bias;
  std::span<const float> bias_image = {};
  std::span<const uint8_t> is_image = {};
  bool normalise = true;
  float routed_scale = 1;
  MatrixView<float> score;
  MatrixView<int32_t> expert;
  MatrixView<float> weight;
};
void route(const Context& context, const RouterArgs& args);

namespace ref {
void route(const RouterArgs& args);
}

}  // namespace fathom::kernels
