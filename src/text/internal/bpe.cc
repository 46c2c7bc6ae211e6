#include "text/internal/bpe.h"

#include <bit>
#include <functional>
#include <queue>
#include <utility>

#include "base/check.h"

namespace fathom::text::internal {

namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// The symbols of one piece as a list in arrays; a merged pair lives on in its left symbol.
class Merger {
 public:
  Merger(const MergeTable& merges, std::vector<TokenId>* symbols)
      : merges_(merges), ids_(*symbols), next_(ids_.size()), previous_(ids_.size()) {
    const auto count = static_cast<int32_t>(ids_.size());
    for (int32_t i = 0; i < count; ++i) {
      next_[i] = i + 1 < count ? i + 1 : kEnd;
      previous_[i] = i - 1;
    }
    std::vector<uint64_t> candidates;
    for (int32_t i = 0; i < count; ++i)
      if (const Merge merge = merge_at(i); merge.rank >= 0) candidates.push_back(key(merge, i));
    queue_ = Queue(std::greater<>(), std::move(candidates));
  }

  void run() {
    while (!queue_.empty()) {
      const uint64_t best = queue_.top();
      queue_.pop();
      const auto left = static_cast<int32_t>(best & 0xFFFFFFFF);
      // Stale when a symbol of the pair has been merged with another one since.
      if (const Merge merge = merge_at(left); merge.rank >= 0 && key(merge, left) == best)
        apply(left, merge.result);
    }
    std::erase(ids_, kGone);
  }

 private:
  using Queue = std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>>;
  static constexpr TokenId kGone = -1;
  static constexpr int32_t kEnd = -1;

  // Lowest rank first, then leftmost.
  static uint64_t key(Merge merge, int32_t left) {
    return uint64_t{static_cast<uint32_t>(merge.rank)} << 32 | static_cast<uint32_t>(left);
  }

  // The merge of the symbol and its neighbour on the right, if there is one.
  Merge merge_at(int32_t left) const {
    if (ids_[left] == kGone || next_[left] == kEnd) return {};
    return merges_.find(ids_[left], ids_[next_[left]]);
  }

  void queue(int32_t left) {
    if (left == kEnd) return;
    if (const Merge merge = merge_at(left); merge.rank >= 0) queue_.push(key(merge, left));
  }

  void apply(int32_t left, TokenId result) {
    const int32_t right = next_[left];
    ids_[left] = result;
    ids_[right] = kGone;
    next_[left] = next_[right];
    if (next_[left] != kEnd) previous_[next_[left]] = left;
    queue(previous_[left]);
    queue(left);
  }

  const MergeTable& merges_;
  std::vector<TokenId>& ids_;
  std::vector<int32_t> next_;  // kEnd: none
  std::vector<int32_t> previous_;
  Queue queue_;
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
