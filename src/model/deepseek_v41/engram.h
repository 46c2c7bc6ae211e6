// Engram (spec §5): table rows named by hashes of the last tokens, injected into the streams.
#pragma once

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// Hashes all rows into step.engram and starts reading. kInvalidArgument for a token without an id.
Status look_up_engram(const Pass& pass, Step& step);

// X := Engram(X) for the rows that are left in the step.
Status inject_engram(const Pass& pass, int32_t layer, Step& step);

}  // namespace fathom::v41
