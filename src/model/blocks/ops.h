// The ops of room kernels with the policy's wishes filled in, so that a forward pass reads as one
// call a line and no rounding point is decided anywhere else. All matrices are f32, one row a
// token.
#pragma once

#include <span>

#include "kernels/context.h"
#include "kernels/policy.h"
#include "kernels/quantise.h"
#include "kernels/rows_view.h"
#include "tensor/view.h"

namespace fathom {

// Where a linear's result is rounded to bf16: at its storage (the policy decides) or never.
enum class Output { kStored, kFull };

class Ops {
 public:
  Ops(const kernels::Context& context, const kernels::Policy& policy)
      : context_(context), policy_(policy) {}

  const kernels::Context& context() const { return context_; }
  const kernels::Policy& policy() const { return policy_; }
  bool rounds() const { return policy_.round_bf16; }

  // y = x · Wᵀ with x as it is; and with x through the FP8 activation quantiser first.
  void linear(MatrixView<const float> x, const WeightView& weight, MatrixView<float> y,
              Output output = Output::kStored) const;
  void quantised_linear(MatrixView<const float> x, const WeightView& weight,
                        MatrixView<float> y) const;

  // y may be x.
  void rms_norm(MatrixView<const float> x, std::span<const float> weight, double eps,
                MatrixView<float> y) const;

  // Rotates the last channels of each head in place by `table` (kernels/rope.h).
  void rope(MatrixView<float> x, int64_t head_dim, MatrixView<const float> table) const;
  void rope_back(MatrixView<float> x, int64_t head_dim, MatrixView<const float> table) const;

  // In place, only when the policy quantises caches.
  void quantise_cache(kernels::Quantiser quantiser, MatrixView<float> x) const;

  // What the FP8 and FP4 linears read of x: the quantised copy in `copy`, or x itself.
  MatrixView<const float> quantised(MatrixView<const float> x, MatrixView<float> copy) const;

 private:
  const kernels::Context& context_;
  const kernels::Policy& policy_;
};

// [rows, cols] floats that live as long as `scratch`; not initialised.
MatrixView<float> take_rows(kernels::Scratch& scratch, int64_t rows, int64_t cols);

}  // namespace fathom
