// Attention core of CSA2: each query attends its window rows, then its selected compressed rows,
// with one sink per head. A row is key and value at once. Spec §3.12.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "kernels/rows_view.h"
#include "tensor/view.h"

namespace fathom::kernels {

struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

//   q [T, H·Hd] f32, rotated queries
//   window [., Hd], rows of this layer's window buffer
//   window_range [T], rows of `window` that query t sees, oldest first; may be empty
//   selected [., Hd], compressed rows
//   selected_index [T, K] i32, rows of `selected`, -1 ends the list; data null: none
//   sink [H] f32, not scaled, has no value
//   y [T, H·Hd] f32, out
//
//   z_e = scale · (q_h · row_e);  m = max(-1e30, max_e z_e);  p_e = exp(z_e - m), not rounded
//   y_h = (Σ_e p_e · row_e) / (Σ_e p_e + exp(sink_h - m));  a query without rows gives 0
// Sums run over the list order (window, then selected) in a fixed order that depends on the list
// alone. Against ref: |y - y_ref| <= 4e-6 · max |row| before rounding.
struct AttentionArgs {
  MatrixView<const float> q;
  int64_t head_dim = 0;
  float scale = 1;
  RowsView window;
  std::span<const RowRange> window_range;
  RowsView selected = {};
  MatrixView<const int32_t> selected_index = {};
  std::span<const float> sink;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void attention(const Context& context, const AttentionArgs& args);

namespace ref {
void attention(const AttentionArgs& args);
}

}  // namespace fathom::kernels
