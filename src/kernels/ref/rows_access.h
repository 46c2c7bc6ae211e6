// One element of cached rows, whatever their type. For kernels/ref only.
#pragma once

#include "kernels/rows_view.h"
#include "tensor/codec.h"

namespace fathom::kernels::ref {

inline float element(const RowsView& view, int64_t row, int64_t col) {
  const int64_t at = row * view.stride + col;
  if (view.dtype == DType::kBF16) return bf16_to_f32(static_cast<const uint16_t*>(view.data)[at]);
  return static_cast<const float*>(view.data)[at];
}

}  // namespace fathom::kernels::ref
