// Views: pointer, shape and stride of memory that somebody else owns. No arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "base/check.h"
#include "tensor/dtype.h"

namespace fathom {

// Row-major [rows, cols]; row r starts at data + r * stride (elements).
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  MatrixView() = default;
  MatrixView(T* data_in, int64_t rows_in, int64_t cols_in)
      : data(data_in), rows(rows_in), cols(cols_in), stride(cols_in) {}
  MatrixView(T* data_in, int64_t rows_in, int64_t cols_in, int64_t stride_in)
      : data(data_in), rows(rows_in), cols(cols_in), stride(stride_in) {}
  // A view of T is a view of const T.
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }  // NOLINT

  std::span<T> row(int64_t r) const { return {data + r * stride, static_cast<size_t>(cols)}; }
  MatrixView rows_from(int64_t first, int64_t count) const {
    FATHOM_CHECK(first >= 0 && count >= 0 && first + count <= rows, "rows {}+{} of {}", first,
                 count, rows);
    return {data + first * stride, count, cols, stride};
  }
};

// A weight as the checkpoint stores it: y = x · Wᵀ with W [rows, cols] = [out, in].
//   kBF16, kF32       data only
//   kF8E4M3           scales E8M0 [ceil(rows/32), ceil(cols/32)]
//   kI8 (packed FP4)  data [rows, cols/2] bytes, low nibble = even column;
//                     scales E8M0 [rows, cols/32]
// Points into the mapped shard; valid as long as its checkpoint (experts: as long as the pin).
struct WeightView {
  DType dtype = DType::kBF16;
  int64_t rows = 0;
  int64_t cols = 0;  // logical columns; a packed FP4 row has cols / 2 bytes
  const void* data = nullptr;
  const uint8_t* scales = nullptr;
};

}  // namespace fathom
