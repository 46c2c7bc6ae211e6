// Runs one answer on the engine thread: pictures, prefill in chunks, then a token a step.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "engine/answer.h"
#include "engine/answer_text.h"
#include "engine/drafts.h"
#include "engine/loaded_model.h"
#include "engine/prefix_cache.h"

namespace fathom {

struct GenerationLimits {
  int64_t context_tokens = 0;        // prompt and answer together
  int64_t prefill_chunk_tokens = 0;  // rows of one forward
};

// How a running answer is stopped. `wants_stop` is looked at between steps, which leaves the
// state whole and reusable; `must_stop` also breaks a step off, between two layers.
struct StopSignals {
  std::atomic<bool> wants_stop{false};
  CancelFlag must_stop{false};
};

// What answers leave behind for those after them. Engine thread only.
struct GenerationMemory {
  PrefixCache cache;
  std::optional<DraftPlanner> planner;  // of greedy answers, in ms; none: nothing was measured
};

class Generation {
 public:
  // All references outlive it. `on_step` is called after each forward (the engine's pulse).
  Generation(const LoadedModel& loaded, const AnswerRequest& request, AnswerSink& sink,
             const StopSignals& signals, GenerationMemory& memory, GenerationLimits limits,
             std::function<void()> on_step);

  // The finished answer, or why there is none. Deltas went to the sink; the end did not yet.
  Result<AnswerSummary> run(double queue_ms);

 private:
  Status encode_pictures();
  Status open_sequence();
  Status prefill();
  Result<FinishReason> decode();
  Status forward(std::span<const InputToken> tokens);
  Result<SampledToken> next_token();
  std::optional<FinishReason> take(const SampledToken& token);
  Status step();
  Status settle();
  bool ends_turn(TokenId token) const;
  SamplingContext sampling_context() const;
  void hold_back_end_of_turn(std::span<float> logits) const;
  void send(AnswerDelta delta);
  Status keep_sequence();

  const LoadedModel& loaded_;
  const AnswerRequest& request_;
  AnswerSink& sink_;
  const StopSignals& signals_;
  GenerationMemory& memory_;
  const GenerationLimits limits_;
  const std::function<void()> on_step_;

  std::vector<PictureTokens> pictures_;
  std::vector<InputToken> inputs_;  // the prompt, pictures expanded
  std::vector<PositionKey> keys_;   // of inputs_
  CachedSequence sequence_;
  std::vector<float> logits_;  // [rows, V] of the last forward: a row for each place to be drawn
  AnswerText text_;
  std::vector<TokenId> generated_;
  int64_t answer_tokens_max_ = 0;
  Sampler sampler_;
  Drafts drafts_;
  AnswerSummary summary_;
  std::chrono::steady_clock::time_point decode_start_;
};

// Positions that a prompt takes, pictures expanded.
int64_t expanded_prompt_tokens(const AnswerRequest& request);

}  // namespace fathom
