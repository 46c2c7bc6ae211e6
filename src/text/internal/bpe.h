// Rank-ordered byte-pair merges in O(n log n): a run of a megabyte is one piece, so anything
// quadratic is a denial of service.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace fathom::text::internal {

struct Merge {
  int32_t rank = -1;  // lower merges first; -1: no such merge
  TokenId result = -1;
};

// Open-addressed map from a pair of ids to its merge.
class MergeTable {
 public:
  MergeTable() : MergeTable(0) {}
  explicit MergeTable(size_t count_max);

  // False when the pair is already there.
  bool insert(TokenId left, TokenId right, Merge merge);
  Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are >= 0, so no pair is this

  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;  // power of two, at most half full
};

// Merges `symbols` in place: again and again the adjacent pair of lowest rank, leftmost first.
void merge_symbols(const MergeTable& merges, std::vector<TokenId>* symbols);

}  // namespace fathom::text::internal
