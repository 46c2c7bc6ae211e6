// Indexer of an index source layer (spec §3.9): which compressed groups each query attends.
#pragma once

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// Fills segment.top_k, and segment.candidates at the candidate source. x [n, D] is the layer's
// attention input, query_latent [n, Qr] its normed query latent. Scores live a tile of queries at a
// time, never [n, groups].
Status select_groups(const Pass& pass, int32_t layer, MatrixView<const float> x,
                     MatrixView<const float> query_latent, Step& step);

}  // namespace fathom::v41
