// Cached rows whose element type depends on the policy: bf16 where that loses nothing, f32
// otherwise.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace fathom::kernels {

// Row-major [rows, cols]; row r starts at element r * stride. dtype is kBF16 or kF32.
struct RowsView {
  DType dtype = DType::kF32;
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements
};

}  // namespace fathom::kernels
