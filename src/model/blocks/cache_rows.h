// Rows of one cache of one sequence, contiguous, appended at the end: compressed KV and index keys,
// which only grow, and the window, of which only the newest rows are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "kernels/attention.h"
#include "kernels/rows_view.h"
#include "tensor/view.h"

namespace fathom {

// Room for a fixed count of rows. Stored as bf16 when the policy quantises caches, which loses
// nothing because quantised rows are bf16-representable, otherwise as f32. Pages are touched only
// when written, so room for a long context costs memory as the sequence grows.
class CacheRows {
 public:
  // kResourceExhausted when the memory is not there.
  static Result<CacheRows> create(int64_t cols, bool is_bf16, int64_t rows_max);

  int64_t count() const { return count_; }
  int64_t rows_max() const { return rows_max_; }
  int64_t bytes() const { return count_ * row_bytes(); }         // held
  int64_t bytes_max() const { return rows_max_ * row_bytes(); }  // taken
  kernels::RowsView view() const;

  // rows.cols is the width; count() + rows.rows <= rows_max.
  void append(MatrixView<const float> rows);

  // Keeps the newest `keep` rows, moved to the front.
  void drop_oldest(int64_t keep);

  // Keeps the oldest `count` rows; count <= count().
  void truncate(int64_t count);

  // Row r as f32, for checks and taps; and what a tap put in its place.
  void read(int64_t row, std::span<float> out) const;
  void write(int64_t row, std::span<const float> values);

 private:
  void store(int64_t row, MatrixView<const float> rows);
  int64_t row_bytes() const { return cols_ * dtype_bytes(dtype_); }

  DType dtype_ = DType::kF32;
  int64_t cols_ = 0;
  int64_t rows_max_ = 0;
  int64_t count_ = 0;
  std::unique_ptr<std::byte[]> data_;  // [rows_max, cols]
};

// The last rows of a layer's window KV, oldest first: positions first_position() ... end - 1
// without a gap. Contiguous, so that a query's window is a range and a chunk's own rows are part of
// it.
class WindowRows {
 public:
  // A query sees `window` rows, its own included; a step appends at most `step_rows_max`.
  static Result<WindowRows> create(int64_t cols, bool is_bf16, int64_t window,
                                   int64_t step_rows_max);

  int64_t first_position() const { return end_position_ - rows_.count(); }
  int64_t end_position() const { return end_position_; }
  int64_t bytes() const { return rows_.bytes(); }
  int64_t bytes_max() const { return rows_.bytes_max(); }
  kernels::RowsView view() const { return rows_.view(); }

  // Rows of positions `position`, `position` + 1, ... When `position` is beyond the end, the rows
  // before it were not needed by anyone (spec §3.11) and what is held is forgotten.
  void append(int64_t position, MatrixView<const float> rows);

  // Forgets the rows of positions from `end_position` on, if there are any. What is held of before
  // the last append serves the queries that it served then.
  void truncate(int64_t end_position);

  // Rows of view() that the query at `position` sees. They must be held.
  kernels::RowRange range(int64_t position) const;
  // Rows of positions first ... end - 1.
  kernels::RowRange range(int64_t first, int64_t end) const;

  void read(int64_t position, std::span<float> out) const;
  void write(int64_t position, std::span<const float> values);

 private:
  int64_t window_ = 0;
  int64_t end_position_ = 0;
  CacheRows rows_;
};

}  // namespace fathom
