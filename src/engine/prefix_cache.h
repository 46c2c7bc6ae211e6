// Keeps the state of the last conversation, so that its next turn prefills only what is new.
// A state cannot be cut back, so it serves only a prompt that goes on from exactly what it holds.
// Touched by the engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "model/language_model.h"

namespace fathom {

// What a position was computed from. Two pictures with the same placeholder differ in content_id.
struct PositionKey {
  TokenId token = 0;
  int32_t picture_row = -1;  // row of the span; -1: a text token
  std::string content_id;    // of the picture, at row 0 of its span only
  bool operator==(const PositionKey&) const = default;
};

struct CachedSequence {
  std::unique_ptr<SequenceState> state;
  std::vector<PositionKey> keys;  // positions held, state->token_count() of them
  int64_t token_count_max = 0;    // what the state was made for
  // Rows before this position got no logits and may be trimmed: only prompts whose own first wanted
  // position is not earlier may go on from here.
  int64_t logits_from = 0;
};

class PrefixCache {
 public:
  // The held state if `keys` begins with all of its keys and has more. It leaves the cache.
  std::optional<CachedSequence> take(const std::vector<PositionKey>& keys, int64_t logits_from,
                                     int64_t token_count_max);
  void put(CachedSequence sequence);
  void clear() { held_.reset(); }

 private:
  std::optional<CachedSequence> held_;
};

}  // namespace fathom
