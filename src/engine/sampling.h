// From one row of logits to one token: bias, penalties, temperature, top_k, top_p, min_p, draw, in
// this order (docs: http-api sampling order). All arithmetic after the logits is double, and every
// random number is a function of (seed, purpose, position), so the same request gives the same
// answer. Called by the engine thread; no state but scratch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/distribution.h"

namespace fathom {

struct LogitBias {
  TokenId token = 0;
  float bias = 0;
};

struct SamplingParams {
  double temperature = 1.0;         // 0: argmax, ties to the lowest id
  int64_t top_k = 0;                // 0: off
  double top_p = 1.0;               // 1: off; 0 keeps one token
  double min_p = 0;                 // 0: off; of the most likely token's probability
  double frequency_penalty = 0;     // subtracted once for each time a token was generated
  double presence_penalty = 0;      // subtracted once from a token generated before
  double repetition_penalty = 1.0;  // divides a positive logit, multiplies a negative one
  int64_t repeat_last_n = -1;       // tokens the repetition penalty looks back on; -1: all
  std::vector<LogitBias> logit_bias = {};
  uint64_t seed = 0;
};

struct TokenLogprob {
  TokenId token = 0;
  double logprob = 0;  // natural log of the softmax of the unmodified logits, <= 0
};

struct SampledToken {
  TokenId token = 0;
  double logprob = 0;             // only if logprobs were asked for
  std::vector<TokenLogprob> top;  // most likely first, ties to the lowest id
};

// A guess of a later token.
struct Draft {
  TokenId token = 0;
  Distribution distribution;  // that it was drawn from
};

// What the sampler may look at besides the logits.
struct SamplingContext {
  std::span<const TokenId> prompt;
  std::span<const TokenId> generated;
  bool is_answer_text = true;  // false while reasoning: bias is left out there
};

struct SamplerOptions {
  SamplingParams params;
  // Structural tokens (end of turn, thinking marks, call markup): never biased, never penalised.
  std::vector<TokenId> protected_tokens;
  bool wants_logprobs = false;
  int top_logprobs = 0;
};

// What a random number of a position is for; numbers of different purposes are independent.
enum class DrawPurpose : uint64_t { kToken = 0, kDraft = 1, kAccept = 2, kResidual = 3 };

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // One token of the answer: warp and draw, with its logprobs if they were asked for.
  // kInternal when a logit is NaN or infinite. `logits` [V] is changed in place.
  Result<SampledToken> pick(std::span<float> logits, const SamplingContext& context);

  // A draft for the place after context.generated, and the distribution it was drawn from. Errors
  // and `logits` as of pick.
  Result<Draft> draft(std::span<float> logits, const SamplingContext& context);

  // As pick, where `draft` stands at that place (exact speculative sampling, spec §7.4): the token
  // has the distribution that pick draws from, whatever the draft's was. The draft is accepted if
  // the token is the draft's.
  Result<SampledToken> judge(const Draft& draft, std::span<float> logits,
                             const SamplingContext& context);

 private:
  // What the next token is drawn from: one token without a choice (temperature 0 and the like).
  Result<Distribution> warp(std::span<float> logits, const SamplingContext& context);
  Distribution weigh(std::span<const float> logits, float max_logit) const;
  double uniform(DrawPurpose purpose, const SamplingContext& context) const;
  // `choose` picks from the warped distribution.
  template <typename Choose>
  Result<SampledToken> sample(std::span<float> logits, const SamplingContext& context,
                              const Choose& choose);

  void apply_bias(std::span<float> logits, const SamplingContext& context);
  void apply_penalties(std::span<float> logits, const SamplingContext& context);
  void add_logprobs(std::span<const float> logits, SampledToken* out) const;
  bool is_protected(TokenId token) const;

  const SamplerOptions options_;
};

// Uniform in [0, 1), a pure function of its arguments.
double counter_uniform(uint64_t seed, uint64_t purpose, uint64_t position);

}  // namespace fathom
