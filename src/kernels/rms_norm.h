// RMSNorm: y = w · x / sqrt(mean(x²) + eps), rounded once. Spec §2.2.
#pragma once

#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

//   x       [T, C]  f32
//   weight  [C]     f32       (a bf16 weight widened)
//   y       [T, C]  f32  out  may be x itself
//
// The mean is summed in double and rounded to f32 before eps is added; the rest is f32.
// Against ref: equal.
struct RmsNormArgs {
  MatrixView<const float> x;
  std::span<const float> weight;
  float eps = 0;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void rms_norm(const Context& context, const RmsNormArgs& args);

namespace ref {
void rms_norm(const RmsNormArgs& args);
}

}  // namespace fathom::kernels
