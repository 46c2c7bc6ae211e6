// What steps of several rows and draft passes take, for the decision how many drafts pay.
#pragma once

#include <chrono>
#include <vector>

#include "model/language_model.h"

namespace fathom {

// Durations in any one unit.
struct StepCosts {
  std::vector<double> step;  // [1 + drafts]: a step of 1 + i rows; not falling
  double draft = 0;          // a draft pass
};

// By the weights that are read: the same in every run, so a plan made with it can be repeated.
StepCosts costs_by_bytes(const ModelInfo& info);

// In ms, of the faster of two tries, on a short sequence of its own. What does not fit `budget` is
// estimated by costs_by_bytes. Empty when the model has no drafter or a try fails. Engine thread.
StepCosts measure_step_costs(LanguageModel& model, std::chrono::milliseconds budget);

}  // namespace fathom
