// One step of DeepSeek-V4.1: rows of one or more sequences through all layers (spec §0); and one
// draft pass of one sequence (§7.3).
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"
#include "model/language_model.h"

namespace fathom::v41 {

struct ForwardOptions {
  bool trim_prefill = true;            // §3.11; off: every row runs in full
  const CancelFlag* cancel = nullptr;  // looked at between layers; null: never
};

// Runs the rows, commits them to the states and writes for each segment the logits of its positions
// >= logits_from to logits[i] ([rows wanted, V]; i is the segment).
Status forward(const Pass& pass, const ForwardOptions& options, std::vector<Segment> segments,
               std::span<const MatrixView<float>> logits);

// The block of layer l, or of a DSpark stage: attention and experts, each between its
// hyper-connections (§2 to §4). `trim`: rows that nobody can see leave the step (§3.11).
Status run_block(const Pass& pass, int32_t l, bool trim, Step& step);

// Drafts behind `next`, the token that follows the state's positions (§7.3). The state has a
// drafter's windows; what forward computes does not change.
Status draft(const Pass& pass, State& state, TokenId next, const DraftChoice& choose,
             const CancelFlag* cancel);

}  // namespace fathom::v41
