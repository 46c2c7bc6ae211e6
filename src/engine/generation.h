// Runs one answer on the engine thread: pictures, prefill in chunks, then a token a step.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "engine/answer.h"
#include "engine/answer_text.h"
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

class Generation {
 public:
  // All references outlive it. `on_step` is called after each forward (the engine's pulse).
  Generation(const LoadedModel& loaded, const AnswerRequest& request, AnswerSink& sink,
             const StopSignals& signals, PrefixCache& cache, GenerationLimits limits,
             std::function<void()> on_step);

  // The finished answer, or why there is none. Deltas went to the sink; the end did not yet.
  Result<AnswerSummary> run(double queue_ms);

 private:
  Status encode_pictures();
  Status open_sequence();
  Status prefill();
  Result<FinishReason> decode();
  Status forward(std::span<const InputToken> tokens);
  bool ends_turn(TokenId token) const;
  void send(AnswerDelta delta);
  void keep_sequence();

  const LoadedModel& loaded_;
  const AnswerRequest& request_;
  AnswerSink& sink_;
  const StopSignals& signals_;
  PrefixCache& cache_;
  const GenerationLimits limits_;
  const std::function<void()> on_step_;

  std::vector<PictureTokens> pictures_;
  std::vector<InputToken> inputs_;  // the prompt, pictures expanded
  std::vector<PositionKey> keys_;   // of inputs_
  CachedSequence sequence_;
  std::vector<float> logits_;  // [V] of the last position, after a forward that wanted them
  AnswerText text_;
  std::vector<TokenId> generated_;
  AnswerSummary summary_;
  std::chrono::steady_clock::time_point decode_start_;
};

// Positions that a prompt takes, pictures expanded.
int64_t expanded_prompt_tokens(const AnswerRequest& request);

}  // namespace fathom
