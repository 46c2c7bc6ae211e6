#include "memory/mapped_row_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fathom {

namespace {

constexpr int64_t kScaleCols = 32;  // columns that share a scale
constexpr uint8_t kScaleNan = 255;
constexpr uint8_t kCodeNan = 0x7F;  // E4M3, without the sign

}  // namespace

MappedRowTable::MappedRowTable(std::string name, const MappedFile* file, int64_t rows, int64_t cols,
                               const uint8_t* codes, const uint8_t* scales)
    : name_(std::move(name)),
      file_(file),
      rows_(rows),
      cols_(cols),
      codes_(codes),
      scales_(scales) {
  FATHOM_CHECK(cols_ % kScaleCols == 0, "{} has {} columns", name_, cols_);
}

void MappedRowTable::prefetch(std::span<const int64_t> row_ids) const {
  const int64_t groups = cols_ / kScaleCols;
  for (int64_t row : row_ids) {
    if (row < 0 || row >= rows_) continue;
    MappedFile::will_need(codes_ + row * cols_, cols_);
    MappedFile::will_need(scales_ + row * groups, groups);
  }
}

Status MappedRowTable::gather(std::span<const int64_t> row_ids, std::span<uint8_t> codes,
                              std::span<uint8_t> scales) const {
  const int64_t groups = cols_ / kScaleCols;
  FATHOM_CHECK(codes.size() == row_ids.size() * static_cast<size_t>(cols_) &&
                   scales.size() == row_ids.size() * static_cast<size_t>(groups),
               "{} rows into {} codes and {} scales", row_ids.size(), codes.size(), scales.size());
  uint8_t* code = codes.data();
  uint8_t* scale = scales.data();
  for (int64_t row : row_ids) {
    FATHOM_CHECK(row >= 0 && row < rows_, "{}: row {} of {}", name_, row, rows_);
    std::memcpy(code, codes_ + row * cols_, static_cast<size_t>(cols_));
    std::memcpy(scale, scales_ + row * groups, static_cast<size_t>(groups));
    const bool is_bad =
        std::find(scale, scale + groups, kScaleNan) != scale + groups ||
        std::any_of(code, code + cols_, [](uint8_t c) { return (c & 0x7F) == kCodeNan; });
    if (is_bad)
      return error(Code::kDataLoss,
                   "{}: tensor {} row {}: found a NaN (E8M0 byte 255 or E4M3 byte 127): the file "
                   "is damaged, fetch it again",
                   file_->name(), name_, row);
    code += cols_;
    scale += groups;
  }
  return {};
}

}  // namespace fathom
