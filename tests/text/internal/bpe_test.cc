#include "text/internal/bpe.h"

#include <gtest/gtest.h>

#include <random>

namespace fathom::text::internal {
namespace {

using Symbols = std::vector<TokenId>;

// The definition: again and again, the leftmost pair of lowest rank.
Symbols merged_slowly(const MergeTable& merges, Symbols symbols) {
  for (;;) {
    Merge best;
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Merge merge = merges.find(symbols[i], symbols[i + 1]);
      if (merge.rank >= 0 && (best.rank < 0 || merge.rank < best.rank)) {
        best = merge;
        best_at = i;
      }
    }
    if (best.rank < 0) return symbols;
    symbols[best_at] = best.result;
    symbols.erase(symbols.begin() + static_cast<int64_t>(best_at) + 1);
  }
}

TEST(Bpe, EqualsTheDefinitionOnRandomMerges) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    MergeTable merges(40);
    int next = 3;  // symbols 0, 1, 2 and what merges make of them
    for (int rank = 0; rank < 40; ++rank) {
      const bool is_new = merges.insert(below(next), below(next), {rank, next});
      if (is_new) ++next;
    }
    Symbols symbols(1 + below(60));
    for (TokenId& symbol : symbols) symbol = below(3);
    Symbols fast = symbols;
    merge_symbols(merges, &fast);
    ASSERT_EQ(fast, merged_slowly(merges, symbols)) << round;
  }
}

TEST(Bpe, LeavesWhatNothingMerges) {
  Symbols none, one = {5}, two = {5, 6};
  const MergeTable merges;
  for (Symbols* symbols : {&none, &one, &two}) {
    const Symbols before = *symbols;
    merge_symbols(merges, symbols);
    EXPECT_EQ(*symbols, before);
  }
}

TEST(MergeTable, KeepsTheFirstOfTwoEqualPairs) {
  MergeTable merges(2);
  EXPECT_TRUE(merges.insert(1, 2, {0, 3}));
  EXPECT_FALSE(merges.insert(1, 2, {1, 4}));
  EXPECT_EQ(merges.find(1, 2).result, 3);
  EXPECT_LT(merges.find(2, 1).rank, 0);
}

}  // namespace
}  // namespace fathom::text::internal
