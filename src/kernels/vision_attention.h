// Full attention of the vision tower: no mask, no sink, N up to 9,189 patches. Spec §6.3.
#pragma once

#include <cstdint>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

//   q, k, v  [N, heads·Hd]  f32       rotated; usually slices of one qkv buffer, so stride != cols
//   y        [N, heads·Hd]  f32  out  softmax(scale · q·kᵀ) · v per head
//
// Tiled: scratch is O(query_tile · N) at most, never N × N. Bits do not depend on query_tile (0:
// the default), threads or ISA. The sums over keys run in a fixed order of their own.
// round_probabilities: p is rounded to bf16 before p·v; the denominator sums unrounded p.
// Against ref (unrounded): |y - y_ref| <= 4e-6 · max |v| before rounding.
struct VisionAttentionArgs {
  MatrixView<const float> q;
  MatrixView<const float> k;
  MatrixView<const float> v;
  int64_t head_dim = 0;
  float scale = 1;
  int64_t query_tile = 0;
  MatrixView<float> y;
  bool round_probabilities = false;
  bool round_bf16 = false;
};
void vision_attention(const Context& context, const VisionAttentionArgs& args);

namespace ref {
void vision_attention(const VisionAttentionArgs& args);
}

}  // namespace fathom::kernels
