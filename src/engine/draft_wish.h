// How many drafts a request wants verified in a step.
#pragma once

#include <cstdint>

namespace fathom {

struct DraftWish {
  static constexpr int64_t kAuto = -1;
  int64_t count = kAuto;  // kAuto: as many as pay; 0: none; N: always N, or the drafter's block
};

}  // namespace fathom
