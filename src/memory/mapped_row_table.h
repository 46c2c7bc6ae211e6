// A RowTable used straight from the mapped checkpoint. Rows are checked each time they are read:
// a table is too large to be checked at load.
#pragma once

#include <cstdint>
#include <string>

#include "io/mapped_file.h"
#include "memory/row_table.h"

namespace fathom {

class MappedRowTable : public RowTable {
 public:
  // `name` is the checkpoint's, for messages: "layers.1.engram.embed". codes [rows, cols] and
  // scales [rows, cols / 32] lie in mappings that outlive the table; `file` holds the scales.
  MappedRowTable(std::string name, const MappedFile* file, int64_t rows, int64_t cols,
                 const uint8_t* codes, const uint8_t* scales);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  void prefetch(std::span<const int64_t> row_ids) const override;
  Status gather(std::span<const int64_t> row_ids, std::span<uint8_t> codes,
                std::span<uint8_t> scales) const override;

 private:
  const std::string name_;
  const MappedFile* const file_;
  const int64_t rows_;
  const int64_t cols_;
  const uint8_t* const codes_;
  const uint8_t* const scales_;
};

}  // namespace fathom
