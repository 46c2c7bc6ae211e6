// Ids that must not be mixed up are types; counts and sizes stay int64_t.
#pragma once

#include <compare>
#include <cstdint>

namespace fathom {

using TokenId = int32_t;  // 0-based row of the embedding; plain so that spans of tokens stay plain

struct LayerId {
  int32_t value = 0;
  auto operator<=>(const LayerId&) const = default;
};

struct ExpertId {
  int32_t value = 0;
  auto operator<=>(const ExpertId&) const = default;
};

}  // namespace fathom
