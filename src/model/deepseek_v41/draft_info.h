// What the engine is told of a checkpoint's drafter (spec §7), for its decision how many drafts
// pay.
#pragma once

#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/weights.h"
#include "model/language_model.h"

namespace fathom::v41 {

// Fills draft_tokens_max, step_bytes and draft_bytes; nothing without stages. A step and the drafts
// behind it run in one piece of at most `step_rows_max` rows.
void add_draft_info(const TextConfig& config, const Weights& weights, int64_t step_rows_max,
                    ModelInfo* info);

}  // namespace fathom::v41
