// Compressor of a kv source layer (spec §3.5-§3.7): tokens in groups of `ratio` become one latent,
// from which the index key and the compressed KV row are made.
#pragma once

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// Appends the groups that x [n, D] completes to the state of each sequence; the tokens of an
// unfinished group wait there.
Status compress(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step);

}  // namespace fathom::v41
