// A table of quantised rows, far larger than memory, of which a step reads a few dozen by number
// (Engram). Row: `cols` FP8 codes (E4M3) and cols / 32 scales (E8M0).
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace fathom {

class RowTable {
 public:
  virtual ~RowTable() = default;

  virtual int64_t rows() const = 0;
  virtual int64_t cols() const = 0;  // a multiple of 32

  // Starts reading rows that will be gathered soon; never blocks, never fails.
  virtual void prefetch(std::span<const int64_t> row_ids) const = 0;

  // Copies rows in the given order: codes [n, cols], scales [n, cols / 32]. Ids must be in
  // [0, rows()). kDataLoss names table and row when a scale is NaN (byte 255). Any thread.
  virtual Status gather(std::span<const int64_t> row_ids, std::span<uint8_t> codes,
                        std::span<uint8_t> scales) const = 0;
};

}  // namespace fathom
