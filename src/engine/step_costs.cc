#include "engine/step_costs.h"

#include <algorithm>
#include <memory>

namespace fathom {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kPromptTokens = 16;
constexpr int kTries = 2;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Tokens from all over the vocabulary, so that their rows are routed to different experts.
std::vector<InputToken> some_tokens(const ModelInfo& info, int64_t count) {
  std::vector<InputToken> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back({static_cast<TokenId>((i * 7919 + 1) % info.vocab_count), nullptr});
  return tokens;
}

// Runs steps and draft passes on one sequence, and forgets them again.
class Stopwatch {
 public:
  static Result<Stopwatch> create(LanguageModel& model) {
    Stopwatch watch(model);
    const auto prompt = some_tokens(model.info(), kPromptTokens);
    FATHOM_ASSIGN(watch.state_,
                  model.new_sequence(kPromptTokens + 1 + model.info().draft_tokens_max));
    FATHOM_TRY(watch.forward(prompt));
    return watch;
  }

  Result<double> step(int64_t rows) {
    const auto tokens = some_tokens(model_->info(), rows);
    return fastest([&] { return forward(tokens); });
  }

  Result<double> draft() {
    const auto take_all = [](const DraftOffer&) { return std::optional<TokenId>(1); };
    return fastest([&] { return model_->draft(*state_, 1, take_all, nullptr); });
  }

 private:
  explicit Stopwatch(LanguageModel& model) : model_(&model) {}

  Status forward(const std::vector<InputToken>& tokens) {
    const SequenceRows rows{state_.get(), tokens, state_->token_count()};
    return model_->forward({&rows, 1}, nullptr, &logits_);
  }

  template <typename Work>
  Result<double> fastest(const Work& work) {
    double best = 0;
    for (int i = 0; i < kTries; ++i) {
      const auto start = Clock::now();
      FATHOM_TRY(work());
      const double ms = ms_since(start);
      best = i == 0 ? ms : std::min(best, ms);
      if (state_->token_count() > kPromptTokens) FATHOM_TRY(state_->truncate(kPromptTokens));
    }
    return best;
  }

  LanguageModel* model_;
  std::unique_ptr<SequenceState> state_;
  std::vector<float> logits_;
};

Result<StepCosts> measure(LanguageModel& model, std::chrono::milliseconds budget) {
  const auto start = Clock::now();
  const StepCosts by_bytes = costs_by_bytes(model.info());
  FATHOM_ASSIGN(Stopwatch watch, Stopwatch::create(model));
  StepCosts costs;
  double scale = 0;  // ms for a unit of by_bytes, of the longest step measured
  for (size_t i = 0; i < by_bytes.step.size(); ++i) {
    if (i == 0 || Clock::now() - start < budget) {
      FATHOM_ASSIGN(const double ms, watch.step(static_cast<int64_t>(i) + 1));
      costs.step.push_back(i == 0 ? ms : std::max(ms, costs.step.back()));
      scale = costs.step.back() / by_bytes.step[i];
    } else {
      costs.step.push_back(scale * by_bytes.step[i]);
    }
  }
  FATHOM_ASSIGN(costs.draft, watch.draft());
  return costs;
}

}  // namespace

StepCosts costs_by_bytes(const ModelInfo& info) {
  return {info.step_bytes, info.draft_bytes};
}

StepCosts measure_step_costs(LanguageModel& model, std::chrono::milliseconds budget) {
  if (model.info().draft_tokens_max == 0) return {};
  Result<StepCosts> costs = measure(model, budget);
  return costs ? std::move(*costs) : StepCosts{};
}

}  // namespace fathom
