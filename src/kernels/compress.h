// Pooling of r tokens into one compressed latent, before its norm. Spec §3.5.
#pragma once

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

//   k, g  [G·r, C]  f32       rows of group j at j·r … j·r + r - 1
//   y     [G, C]    f32  out  per channel: Σ softmax over the group of g, times k
// Against ref: rel 1e-6 (own exp).
struct PoolGroupsArgs {
  MatrixView<const float> k;
  MatrixView<const float> g;
  int64_t ratio = 2;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void pool_groups(const Context& context, const PoolGroupsArgs& args);

namespace ref {
void pool_groups(const PoolGroupsArgs& args);
}

}  // namespace fathom::kernels
