// What each tap of the forward pass is computed from, so that a comparison is judged only when the
// golden's own inputs were fed to it.
#pragma once

#include <string>
#include <vector>

#include "model/deepseek_v41/config.h"

namespace fathom::verify {

// Tap names that go into `tap`; empty for what follows from the ids alone. Weights and positions
// are not listed. A tap that is not known is computed from "unknown", which no golden holds.
std::vector<std::string> tap_inputs(const v41::TextConfig& config, const std::string& tap);

}  // namespace fathom::verify
