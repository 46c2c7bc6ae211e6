// DSpark, the drafter of the model (spec §7): stages that read what the backbone's last layers saw
// of each position, and guess a block of tokens behind the one that was drawn last.
#pragma once

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"
#include "model/language_model.h"

namespace fathom::v41 {

// M (§7.2): the mean of the streams that enter each target layer, into the step's rows; at the last
// target into the states, where the drafter finds it. Nothing without a drafter or an observer.
Status take_main_hidden(const Pass& pass, int32_t layer, Step& step);

// Window rows of every stage for the positions that it has none of yet, as far as a draft behind
// the newest position sees them (§7.2).
Status seed_drafts(const Pass& pass, State& state);

// h [block, D]: what the stages make of `next` and noise behind it (§7.3). The windows are seeded;
// rows of the block itself are not kept.
Status draft_block(const Pass& pass, State& state, TokenId next, const CancelFlag* cancel,
                   MatrixView<float> h);

// The chain of drafts behind `next` from h, through the Markov head: `choose` draws each (§7.3).
Status draft_tokens(const Pass& pass, TokenId next, MatrixView<const float> h,
                    const DraftChoice& choose);

}  // namespace fathom::v41
