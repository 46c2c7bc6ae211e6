#include "text/internal/bpe.h"

#include <bit>
#include <queue>

#include "base/check.h"

namespace fathom::text::internal {

namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// A merge that was possible when it was queued. It is stale when either symbol has changed since.
struct Candidate {
  int32_t rank;
  int32_t left;  // indices of symbols
  int32_t right;
  TokenId left_id;
  TokenId right_id;

  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

// The symbols of one piece as a list in arrays; a merged pair lives on in its left symbol.
class Merger {
 public:
  Merger(const MergeTable& merges, std::vector<TokenId>* symbols)
      : merges_(merges), ids_(*symbols), next_(ids_.size()), previous_(ids_.size()) {
    const auto count = static_cast<int32_t>(ids_.size());
    for (int32_t i = 0; i < count; ++i) {
      next_[i] = i + 1 < count ? i + 1 : -1;
      previous_[i] = i - 1;
    }
    for (int32_t i = 0; i + 1 < count; ++i) queue(i, i + 1);
  }

  void run() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (ids_[best.left] == best.left_id && ids_[best.right] == best.right_id &&
          next_[best.left] == best.right)
        apply(best);
    }
    size_t kept = 0;
    for (const TokenId id : ids_)
      if (id != kGone) ids_[kept++] = id;
    ids_.resize(kept);
  }

 private:
  static constexpr TokenId kGone = -1;

  void queue(int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const Merge merge = merges_.find(ids_[left], ids_[right]);
    if (merge.rank >= 0) queue_.push({merge.rank, left, right, ids_[left], ids_[right]});
  }

  void apply(const Candidate& best) {
    ids_[best.left] = merges_.find(best.left_id, best.right_id).result;
    ids_[best.right] = kGone;
    const int32_t after = next_[best.right];
    next_[best.left] = after;
    if (after >= 0) previous_[after] = best.left;
    queue(previous_[best.left], best.left);
    queue(best.left, after);
  }

  const MergeTable& merges_;
  std::vector<TokenId>& ids_;
  std::vector<int32_t> next_;
  std::vector<int32_t> previous_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

MergeTable::MergeTable(size_t count_max) : slots_(std::bit_ceil(2 * count_max + 2)) {}

size_t MergeTable::slot_of(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = (pair * 0x9E3779B97F4A7C15u) >> 20 & mask;
  while (slots_[slot].pair != pair && slots_[slot].pair != kEmpty) slot = (slot + 1) & mask;
  return slot;
}

bool MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  Slot& slot = slots_[slot_of(pair_key(left, right))];
  if (slot.pair != kEmpty) return false;
  slot = {pair_key(left, right), merge};
  return true;
}

Merge MergeTable::find(TokenId left, TokenId right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

void merge_symbols(const MergeTable& merges, std::vector<TokenId>* symbols) {
  FATHOM_CHECK(symbols->size() < size_t{1} << 31, "a piece of {} bytes", symbols->size());
  if (symbols->size() > 1) Merger(merges, symbols).run();
}

}  // namespace fathom::text::internal
