#include "engine/draft_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace fathom {

namespace {

// Over 256 tokens drafts may cost 2 % of plain decoding, 5.1 plain steps (issue "Drafts", 5): the
// credit that was saved before plus what 256 tokens earn, 2 + 2.56.
constexpr double kCreditMax = 2.0;
constexpr double kCreditPerToken = 0.01;
constexpr double kForget = 0.97;           // of acceptance, a draft: about 33 drafts count
constexpr double kOwnCorrection = 0.1;     // of a cost, towards what was measured
constexpr double kOtherCorrection = 0.02;  // of all others: a slower machine slows all

}  // namespace

DraftPlanner::DraftPlanner(StepCosts costs, bool follows_clock)
    : costs_(std::move(costs)),
      follows_clock_(follows_clock),
      acceptance_(costs_.step.size() - 1),
      credit_(kCreditMax) {
  FATHOM_CHECK(!acceptance_.empty() && plain() > 0, "a plan for {} drafts", acceptance_.size());
}

bool DraftPlanner::can_afford(int64_t drafts) const {
  const double worst = (costs_.draft + costs_.step[static_cast<size_t>(drafts)]) / plain() - 1;
  return worst <= credit_;
}

bool DraftPlanner::begins_drafts() {
  confidences_.clear();
  chain_survival_ = chain_tokens_ = 1;
  if (!can_afford(1)) return false;
  // A full credit is spent on a try: what was refused long ago may have become good.
  if (credit_ >= kCreditMax) return true;
  double survival = 1, tokens = 1;
  for (size_t i = 0; i < acceptance_.size() && can_afford(static_cast<int64_t>(i) + 1); ++i) {
    survival *= acceptance_[i].accepted / acceptance_[i].tried;
    tokens += survival;
    if (tokens / (costs_.draft + costs_.step[i + 1]) > 1 / plain()) return true;
  }
  return false;
}

bool DraftPlanner::takes_draft(double confidence) {
  const size_t i = confidences_.size();
  if (i == acceptance_.size() || !can_afford(static_cast<int64_t>(i) + 1)) return false;
  const Acceptance& past = acceptance_[i];
  const double survival =
      chain_survival_ * std::min(1.0, confidence * past.accepted / past.expected);
  // The draft pass is paid for already: only the longer step counts.
  const double rate = chain_tokens_ / costs_.step[i];
  const bool is_try = i == 0 && credit_ >= kCreditMax;
  if ((chain_tokens_ + survival) / costs_.step[i + 1] <= rate && !is_try) return false;
  confidences_.push_back(confidence);
  chain_survival_ = survival;
  chain_tokens_ += survival;
  return true;
}

void DraftPlanner::record(const Step& step) {
  FATHOM_CHECK(step.verified < std::ssize(costs_.step) && step.judged <= step.verified,
               "{} of {} drafts judged, a step has {}", step.judged, step.verified,
               acceptance_.size());
  // A chain that was not planned here has no confidences.
  const int64_t judged = std::min<int64_t>(step.judged, std::ssize(confidences_));
  for (int64_t i = 0; i < judged; ++i) {
    Acceptance& a = acceptance_[static_cast<size_t>(i)];
    a.accepted = kForget * a.accepted + (i < step.accepted ? 1 : 0);
    a.expected = kForget * a.expected + confidences_[static_cast<size_t>(i)];
    a.tried = kForget * a.tried + 1;
  }
  if (follows_clock_) correct_costs(step);
  // By the costs as they are known now, not by this step's: a pause of the machine is nobody's
  // loss.
  const auto tokens = static_cast<double>(1 + step.accepted);
  const double cost = costs_.step[static_cast<size_t>(step.verified)] + costs_.draft;
  const double gain = step.drafted ? tokens - cost / plain() : 0;
  credit_ = std::min(kCreditMax, credit_ + gain + kCreditPerToken * tokens);
}

void DraftPlanner::correct_costs(const Step& step) {
  const double ratio = step.step_cost / costs_.step[static_cast<size_t>(step.verified)];
  if (!(ratio > 0) || !std::isfinite(ratio)) return;
  // A pause of the machine is not a cost of the step.
  const double bounded = std::clamp(ratio, 0.25, 4.0);
  for (size_t i = 0; i < costs_.step.size(); ++i)
    costs_.step[i] *= std::pow(
        bounded, i == static_cast<size_t>(step.verified) ? kOwnCorrection : kOtherCorrection);
  for (size_t i = 1; i < costs_.step.size(); ++i)
    costs_.step[i] = std::max(costs_.step[i], costs_.step[i - 1]);
  if (step.drafted && costs_.draft > 0)
    costs_.draft *= std::pow(std::clamp(step.draft_cost / costs_.draft, 0.25, 4.0), kOwnCorrection);
}

}  // namespace fathom
