// CSA2 attention of one layer (spec §3): what positions leave behind for later queries, and what
// queries make of it.
#pragma once

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// Window rows of this layer and, at a kv source, compressed rows and index keys, into the state of
// each sequence. x [n, D]: the normed input of every row that is left in the step.
Status remember(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step);

// kv [n, Hd] = the window rows that x [n, D] leaves behind (§3.2), rotated by `table` [n, R].
void window_latents(const Pass& pass, int32_t layer, MatrixView<const float> x,
                    MatrixView<const float> table, MatrixView<float> kv);

// out [n, D] = the attention sublayer of x [n, D]. The rows have been remembered.
Status attend(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step,
              MatrixView<float> out);

}  // namespace fathom::v41
