// The drafts of one answer: which tokens are guessed ahead of each step, what they were drawn from,
// and how many of them the model agreed with. Used by Generation on the engine thread.
//
//   propose ─► forward of the next token and all() ─► judge, place by place ─► propose ...
//
// Place i of a step is drawn from row i of its logits, and has a draft for each row but the last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/answer.h"
#include "engine/draft_planner.h"
#include "engine/draft_wish.h"
#include "engine/sampling.h"
#include "model/language_model.h"

namespace fathom {

class Drafts {
 public:
  // `model` and `sampler` outlive it. No planner: the model has no drafter.
  Drafts(LanguageModel& model, Sampler& sampler, DraftWish wish,
         std::optional<DraftPlanner> planner);

  // Guesses what follows `next`, which context.generated ends with: at most `room` tokens.
  // A failing draft pass ends drafting for this answer, not the answer; only kCancelled is told.
  Status propose(SequenceState& state, TokenId next, const SamplingContext& context, int64_t room,
                 const CancelFlag* cancel);

  std::span<const Draft> all() const { return drafts_; }
  // The draft at the place to be drawn next, null where there is none.
  const Draft* current() const { return place_ < drafts_.size() ? &drafts_[place_] : nullptr; }
  size_t place() const { return place_; }
  // What was drawn there. True when it was the draft's token: the next place is to be drawn then,
  // its logits are there already.
  bool judge(TokenId drawn);

  // Durations of the last draft pass and of the forward that followed, in the costs' unit.
  void took(double draft_cost, double step_cost);
  // The answer is over: the last step counts too.
  void finish();

  const std::vector<DraftTally>& tallies() const { return tallies_; }  // [place]
  // With what this answer taught it.
  const std::optional<DraftPlanner>& planner() const { return planner_; }

 private:
  bool begins_chain(int64_t room);
  std::optional<TokenId> choose(const DraftOffer& offer, int64_t room,
                                const SamplingContext& context);
  void record_step();

  LanguageModel& model_;
  Sampler& sampler_;
  const DraftWish wish_;
  std::optional<DraftPlanner> planner_;
  std::vector<TokenId> text_;  // generated tokens and the drafts behind them
  std::vector<Draft> drafts_;
  size_t place_ = 0;
  bool is_broken_ = false;  // a draft pass failed
  bool has_step_ = false;   // a step is not recorded yet
  DraftPlanner::Step step_;
  std::vector<DraftTally> tallies_;
};

}  // namespace fathom
