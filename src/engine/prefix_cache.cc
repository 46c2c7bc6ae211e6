#include "engine/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fathom {

std::optional<CachedSequence> PrefixCache::take(const std::vector<PositionKey>& keys,
                                                int64_t logits_from, int64_t token_count_max) {
  if (!held_ || held_->keys.size() >= keys.size() || logits_from < held_->logits_from ||
      token_count_max > held_->token_count_max)
    return std::nullopt;
  if (!std::equal(held_->keys.begin(), held_->keys.end(), keys.begin())) return std::nullopt;
  return std::exchange(held_, std::nullopt);
}

void PrefixCache::put(CachedSequence sequence) {
  FATHOM_CHECK(sequence.state->token_count() == static_cast<int64_t>(sequence.keys.size()),
               "a state of {} positions with {} keys", sequence.state->token_count(),
               sequence.keys.size());
  if (!sequence.keys.empty()) held_ = std::move(sequence);
}

}  // namespace fathom
