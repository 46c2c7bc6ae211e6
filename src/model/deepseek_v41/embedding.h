// Both ends of the model: token ids and picture rows in, logits out (spec §2.1, §8.4).
#pragma once

#include <span>

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// Fills the streams, each with the embedding of its row, and the first collapse weights.
Status embed(const Pass& pass, Step& step);

// Keeps the rows at or after logits_from and writes the logits of segment i to logits[i]
// ([rows wanted, V], f32 in every policy).
Status head(const Pass& pass, Step& step, std::span<const MatrixView<float>> logits);

}  // namespace fathom::v41
