// How many drafts a request wants verified in a step.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace fathom {

struct DraftWish {
  static constexpr int64_t kAuto = -1;
  int64_t count = kAuto;  // kAuto: as many as pay; 0: none; N: always N, or the drafter's block
};

inline constexpr int64_t kDraftsMax = 64;  // the longest block that a checkpoint may have

// "auto", "off" or a number up to kDraftsMax.
Result<DraftWish> parse_draft_wish(std::string_view text);

}  // namespace fathom
