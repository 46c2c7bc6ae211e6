// How many drafts to verify in each step (spec §7.5), 0 included, so that drafts pay and never cost
// more than a bounded share of plain decoding. Used by one answer, on the engine thread.
//
// Two questions a step. Before the draft pass: is one worth its time at all, by what was accepted
// so far? After each draft: does verifying one more raise the expected tokens per second, by the
// drafter's confidence? Both are then held to a credit, counted in plain steps: a step may lose
// only what the steps before it gained, so that no stretch of an answer is much slower than plain.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/step_costs.h"

namespace fathom {

class DraftPlanner {
 public:
  // The costs at the beginning. With `follows_clock` they are corrected by what record() is told;
  // without, every decision is a function of the tokens alone, so that a seed repeats an answer.
  DraftPlanner(StepCosts costs, bool follows_clock);

  // Whether the next step begins with a draft pass. A new chain of drafts begins.
  bool begins_drafts();
  // Whether the chain takes one more draft, of which the drafter thinks that it is accepted with
  // this probability if all before it are.
  bool takes_draft(double confidence);

  // What became of a step.
  struct Step {
    bool drafted = false;  // a draft pass was run
    int64_t verified = 0;  // drafts that the forward ran
    int64_t judged = 0;    // of these, compared with the model: up to the first rejected one
    int64_t accepted = 0;
    double draft_cost = 0;  // in the costs' unit; both are ignored without follows_clock
    double step_cost = 0;
  };
  void record(const Step& step);

  // As corrected so far; a good start for the next answer.
  const StepCosts& costs() const { return costs_; }

 private:
  // Share of the last drafts at one place that were accepted, of those that were verified there.
  struct Acceptance {
    double accepted = 1;  // a start that tries
    double expected = 1;  // sum of confidences
    double tried = 2;
  };

  double plain() const { return costs_.step.front(); }
  bool can_afford(int64_t drafts) const;
  void correct_costs(const Step& step);

  StepCosts costs_;
  bool follows_clock_;
  std::vector<Acceptance> acceptance_;  // [drafts]
  std::vector<double> confidences_;     // of the chain that was begun
  double chain_survival_ = 1;           // probability that the whole chain is accepted
  double chain_tokens_ = 1;             // expected tokens of a step that verifies the chain
  double credit_;
};

}  // namespace fathom
