#include "model/blocks/cache_rows.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "kernels/elementwise.h"

namespace fathom {

Result<CacheRows> CacheRows::create(int64_t cols, bool is_bf16, int64_t rows_max) {
  CacheRows rows;
  rows.dtype_ = is_bf16 ? DType::kBF16 : DType::kF32;
  rows.cols_ = cols;
  rows.rows_max_ = rows_max;
  const int64_t bytes = rows_max * rows.row_bytes();
  rows.data_.reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  if (rows.data_ == nullptr)
    return error(Code::kResourceExhausted,
                 "a cache of {} rows needs {} bytes, which this machine does not have free; "
                 "use a shorter context",
                 rows_max, bytes);
  return rows;
}

kernels::RowsView CacheRows::view() const {
  return {.dtype = dtype_, .data = data_.get(), .rows = count_, .cols = cols_, .stride = cols_};
}

void CacheRows::append(MatrixView<const float> rows) {
  FATHOM_CHECK(rows.cols == cols_ && count_ + rows.rows <= rows_max_,
               "append [{}, {}] to {} of {} rows of {}", rows.rows, rows.cols, count_, rows_max_,
               cols_);
  store(count_, rows);
  count_ += rows.rows;
}

void CacheRows::store(int64_t row, MatrixView<const float> rows) {
  std::byte* to = data_.get() + row * row_bytes();
  if (dtype_ == DType::kBF16)
    kernels::narrow_bf16(rows, {reinterpret_cast<uint16_t*>(to), rows.rows, cols_});
  else
    for (int64_t r = 0; r < rows.rows; ++r)
      std::memcpy(to + r * row_bytes(), rows.row(r).data(), static_cast<size_t>(row_bytes()));
}

void CacheRows::drop_oldest(int64_t keep) {
  if (keep >= count_) return;
  std::memmove(data_.get(), data_.get() + (count_ - keep) * row_bytes(),
               static_cast<size_t>(keep * row_bytes()));
  count_ = keep;
}

void CacheRows::truncate(int64_t count) {
  FATHOM_CHECK(count >= 0 && count <= count_, "cut to {} of {} rows", count, count_);
  count_ = count;
}

void CacheRows::read(int64_t row, std::span<float> out) const {
  FATHOM_CHECK(row >= 0 && row < count_, "row {} of {}", row, count_);
  const std::byte* from = data_.get() + row * row_bytes();
  if (dtype_ == DType::kBF16)
    kernels::widen_bf16({reinterpret_cast<const uint16_t*>(from), 1, cols_},
                        {out.data(), 1, cols_});
  else
    std::memcpy(out.data(), from, static_cast<size_t>(row_bytes()));
}

void CacheRows::write(int64_t row, std::span<const float> values) {
  FATHOM_CHECK(row >= 0 && row < count_, "row {} of {}", row, count_);
  store(row, {values.data(), 1, cols_});
}

Result<WindowRows> WindowRows::create(int64_t cols, bool is_bf16, int64_t window,
                                      int64_t step_rows_max) {
  WindowRows rows;
  rows.window_ = window;
  // At least one window of free rows, so that a decode moves each row about once.
  const int64_t rows_max = window - 1 + std::max(step_rows_max, window);
  FATHOM_ASSIGN(rows.rows_, CacheRows::create(cols, is_bf16, rows_max));
  return rows;
}

void WindowRows::append(int64_t position, MatrixView<const float> rows) {
  FATHOM_CHECK(position >= end_position_, "window rows from {} after {}", position, end_position_);
  if (position > end_position_) rows_.drop_oldest(0);
  if (rows_.count() + rows.rows > rows_.rows_max()) rows_.drop_oldest(window_ - 1);
  rows_.append(rows);
  end_position_ = position + rows.rows;
}

void WindowRows::truncate(int64_t end_position) {
  if (end_position >= end_position_) return;
  // Rows older than all that are held may have been skipped, then none is left.
  const int64_t kept = std::max<int64_t>(0, end_position - first_position());
  rows_.truncate(kept);
  end_position_ = end_position;
}

kernels::RowRange WindowRows::range(int64_t position) const {
  return range(std::max<int64_t>(0, position - window_ + 1), position + 1);
}

kernels::RowRange WindowRows::range(int64_t first, int64_t end) const {
  FATHOM_CHECK(first >= first_position() && end <= end_position_,
               "window rows {} to {}: held are {} to {}", first, end, first_position(),
               end_position_);
  return {.first = first - first_position(), .count = end - first};
}

void WindowRows::read(int64_t position, std::span<float> out) const {
  rows_.read(position - first_position(), out);
}

void WindowRows::write(int64_t position, std::span<const float> values) {
  rows_.write(position - first_position(), values);
}

}  // namespace fathom
