#include "model/blocks/ops.h"

#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"

namespace fathom {

void Ops::linear(MatrixView<const float> x, const WeightView& weight, MatrixView<float> y,
                 Output output) const {
  kernels::linear(context_, {.x = x,
                             .weight = weight,
                             .y = y,
                             .round_bf16 = output == Output::kStored && policy_.round_bf16});
}

void Ops::quantised_linear(MatrixView<const float> x, const WeightView& weight,
                           MatrixView<float> y) const {
  kernels::linear(context_, {.x = x,
                             .weight = weight,
                             .y = y,
                             .quantise_activations = policy_.quantise_activations,
                             .round_bf16 = policy_.round_bf16});
}

void Ops::rms_norm(MatrixView<const float> x, std::span<const float> weight, double eps,
                   MatrixView<float> y) const {
  kernels::rms_norm(context_, {.x = x,
                               .weight = weight,
                               .eps = static_cast<float>(eps),
                               .y = y,
                               .round_bf16 = policy_.round_bf16});
}

void Ops::rope(MatrixView<float> x, int64_t head_dim, MatrixView<const float> table) const {
  kernels::rope(context_,
                {.x = x, .head_dim = head_dim, .table = table, .round_bf16 = policy_.round_bf16});
}

void Ops::rope_back(MatrixView<float> x, int64_t head_dim, MatrixView<const float> table) const {
  kernels::rope(context_, {.x = x,
                           .head_dim = head_dim,
                           .table = table,
                           .inverse = true,
                           .round_bf16 = policy_.round_bf16});
}

void Ops::quantise_cache(kernels::Quantiser quantiser, MatrixView<float> x) const {
  if (policy_.quantise_caches)
    kernels::quantise(context_, {.x = x, .y = x, .quantiser = quantiser});
}

MatrixView<const float> Ops::quantised(MatrixView<const float> x, MatrixView<float> copy) const {
  if (!policy_.quantise_activations) return x;
  kernels::quantise(context_, {.x = x, .y = copy, .quantiser = kernels::Quantiser::kFp8Block32});
  return copy;
}

MatrixView<float> take_rows(kernels::Scratch& scratch, int64_t rows, int64_t cols) {
  return {scratch.take<float>(rows * cols), rows, cols};
}

}  // namespace fathom
