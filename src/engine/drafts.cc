#include "engine/drafts.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace fathom {

Drafts::Drafts(LanguageModel& model, Sampler& sampler, DraftWish wish,
               std::optional<DraftPlanner> planner)
    : model_(model),
      sampler_(sampler),
      wish_(wish),
      planner_(std::move(planner)),
      tallies_(static_cast<size_t>(model.info().draft_tokens_max)) {}

bool Drafts::begins_chain(int64_t room) {
  if (!planner_ || is_broken_ || room < 1) return false;
  return wish_.count == DraftWish::kAuto ? planner_->begins_drafts() : wish_.count > 0;
}

std::optional<TokenId> Drafts::choose(const DraftOffer& offer, int64_t room,
                                      const SamplingContext& context) {
  const auto count = std::ssize(drafts_);
  if (count == std::min(room, std::ssize(tallies_))) return std::nullopt;
  const bool is_taken = wish_.count == DraftWish::kAuto ? planner_->takes_draft(offer.confidence)
                                                        : count < wish_.count;
  if (!is_taken) return std::nullopt;
  Result<Draft> draft =
      sampler_.draft(offer.logits, {context.prompt, text_, context.is_answer_text});
  if (!draft) return std::nullopt;  // a logit that is not finite: no guess
  drafts_.push_back(std::move(*draft));
  text_.push_back(drafts_.back().token);
  return drafts_.back().token;
}

Status Drafts::propose(SequenceState& state, TokenId next, const SamplingContext& context,
                       int64_t room, const CancelFlag* cancel) {
  record_step();
  drafts_.clear();
  place_ = 0;
  step_ = {};
  step_.drafted = begins_chain(room);
  has_step_ = true;
  if (!step_.drafted) return Status::ok();
  text_.assign(context.generated.begin(), context.generated.end());
  const Status status = model_.draft(
      state, next, [&](const DraftOffer& offer) { return choose(offer, room, context); }, cancel);
  if (status.is_ok() || status.code() == Code::kCancelled) return status;
  log(LogLevel::kWarning, "no more drafts in this answer: {}", status.message());
  is_broken_ = true;
  drafts_.clear();
  return Status::ok();
}

bool Drafts::judge(TokenId drawn) {
  if (place_ >= drafts_.size()) return false;
  DraftTally& tally = tallies_[place_];
  ++tally.judged;
  ++step_.judged;
  if (drafts_[place_].token != drawn) return false;
  ++tally.accepted;
  ++place_;
  return true;
}

void Drafts::took(double draft_cost, double step_cost) {
  step_.draft_cost = draft_cost;
  step_.step_cost = step_cost;
}

void Drafts::finish() {
  record_step();
}

void Drafts::record_step() {
  if (!has_step_) return;
  has_step_ = false;
  step_.verified = std::ssize(drafts_);
  step_.accepted = static_cast<int64_t>(place_);
  if (wish_.count == DraftWish::kAuto && planner_) planner_->record(step_);
}

}  // namespace fathom
