#include "engine/draft_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace fathom {
namespace {

const StepCosts kCheapRows = {{1, 1.1, 1.2, 1.3, 1.4, 1.5}, 0.3};
const StepCosts kDearRows = {{1, 1.6, 2.2, 2.8, 3.4, 4.0}, 0.3};

struct Answer {
  double tokens = 0, time = 0;
  std::vector<double> time_at_token;  // when each token was there
  int64_t longest = 0;
};

// An answer of `tokens_min` tokens on a machine with these costs, where each draft is accepted as
// `is_accepted(token index)` says. The drafter is as sure as `confidence`.
template <typename IsAccepted>
Answer simulate(const StepCosts& costs, int tokens_min, double confidence, IsAccepted is_accepted) {
  DraftPlanner planner(costs, /*follows_clock=*/true);
  Answer run;
  while (run.tokens < tokens_min) {
    DraftPlanner::Step step;
    step.drafted = planner.begins_drafts();
    while (step.drafted && planner.takes_draft(confidence)) ++step.verified;
    while (step.accepted < step.verified &&
           is_accepted(static_cast<int>(run.tokens) + static_cast<int>(step.accepted)))
      ++step.accepted;
    step.judged = std::min(step.verified, step.accepted + 1);
    step.step_cost = costs.step[static_cast<size_t>(step.verified)];
    step.draft_cost = step.drafted ? costs.draft : 0;
    planner.record(step);
    run.tokens += 1 + static_cast<double>(step.accepted);
    run.time += step.step_cost + step.draft_cost;
    run.time_at_token.resize(static_cast<size_t>(run.tokens), run.time);
    run.longest = std::max(run.longest, step.verified);
  }
  return run;
}

// Most time that 256 tokens in a row took, in plain steps.
double slowest_256(const Answer& run) {
  double slowest = 0;
  for (size_t i = 256; i < run.time_at_token.size(); ++i)
    slowest = std::max(slowest, run.time_at_token[i] - run.time_at_token[i - 256]);
  return slowest;
}

TEST(DraftPlanner, TakesTheWholeBlockWhereEverythingIsAccepted) {
  const Answer run = simulate(kCheapRows, 600, 0.95, [](int) { return true; });
  EXPECT_EQ(run.longest, 5);
  EXPECT_LT(run.time, run.tokens / 2.5) << "6 tokens cost 1.8 plain steps";
}

TEST(DraftPlanner, CostsAtMostTwoPercentOfAnyStretchWhereNothingIsAccepted) {
  for (const StepCosts& costs : {kCheapRows, kDearRows})
    for (const double confidence : {0.05, 0.5, 0.99})
      EXPECT_LE(slowest_256(simulate(costs, 3000, confidence, [](int) { return false; })),
                256 / 0.98)
          << costs.step[1] << " " << confidence;
}

TEST(DraftPlanner, CostsAtMostTwoPercentOfAnyStretchWhenTheLuckTurns) {
  const auto turns = [](int token) { return token / 300 % 2 == 0; };
  for (const StepCosts& costs : {kCheapRows, kDearRows})
    EXPECT_LE(slowest_256(simulate(costs, 3000, 0.9, turns)), 256 / 0.98);
}

TEST(DraftPlanner, APauseOfTheMachineDoesNotEndDrafts) {
  DraftPlanner planner(kCheapRows, true);
  int64_t drafted = 0;
  for (int i = 0; i < 200; ++i) {
    DraftPlanner::Step step{.drafted = planner.begins_drafts()};
    while (step.drafted && planner.takes_draft(0.9)) ++step.verified;
    step.judged = step.accepted = step.verified;
    const double pause = i == 20 ? 10'000 : 1;
    step.step_cost = pause * kCheapRows.step[static_cast<size_t>(step.verified)];
    step.draft_cost = step.drafted ? kCheapRows.draft : 0;
    planner.record(step);
    if (i > 30) drafted += step.verified;
  }
  EXPECT_GT(drafted, 4 * 160) << "five of most steps";
}

TEST(DraftPlanner, ComesBackWhenDraftsBecomeGood) {
  const auto later = [](int token) { return token > 1000; };
  const Answer run = simulate(kCheapRows, 3000, 0.9, later);
  EXPECT_LT(run.time, 1000 / 0.98 + 2000 * 0.6);
}

TEST(DraftPlanner, StopsTheChainWhereConfidenceEnds) {
  DraftPlanner planner(kDearRows, true);
  ASSERT_TRUE(planner.begins_drafts());
  EXPECT_TRUE(planner.takes_draft(0.95));
  EXPECT_FALSE(planner.takes_draft(0.02)) << "a row costs 0.6 and brings 0.02 tokens";
}

TEST(DraftPlanner, WithoutTheClockDecisionsAreOfTheTokensAlone) {
  DraftPlanner a(kCheapRows, false), b(kCheapRows, false);
  for (int i = 0; i < 200; ++i) {
    const bool drafts = a.begins_drafts();
    ASSERT_EQ(drafts, b.begins_drafts());
    DraftPlanner::Step step{.drafted = drafts};
    while (drafts && step.verified < 5 && a.takes_draft(0.7)) {
      ASSERT_TRUE(b.takes_draft(0.7));
      ++step.verified;
    }
    step.accepted = std::min<int64_t>(step.verified, i % 3);
    step.judged = std::min(step.verified, step.accepted + 1);
    step.step_cost = 1;
    a.record(step);
    step.step_cost = 1000;
    b.record(step);
  }
}

}  // namespace
}  // namespace fathom
