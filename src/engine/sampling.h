// From one row of logits to one token: bias, penalties, temperature, top_k, top_p, min_p, draw, in
// this order (docs: http-api sampling order). All arithmetic after the logits is double, and the
// draw depends only on (seed, choice, position), so the same request gives the same answer.
// Called by the engine thread; no state but scratch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

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

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // kInternal when a logit is NaN or infinite. `logits` [V] is changed in place.
  Result<SampledToken> pick(std::span<float> logits, const SamplingContext& context);

 private:
  struct Candidate {
    double weight;  // unnormalised probability, the most likely token's is 1
    TokenId token;
  };

  void apply_bias(std::span<float> logits, const SamplingContext& context);
  void apply_penalties(std::span<float> logits, const SamplingContext& context);
  void add_logprobs(std::span<const float> logits, SampledToken* out) const;
  TokenId draw(std::span<const float> logits, float max_logit, int64_t position);
  bool is_protected(TokenId token) const;

  const SamplerOptions options_;
  std::vector<Candidate> candidates_;  // scratch of draw
};

// Uniform in [0, 1), a pure function of its arguments.
double counter_uniform(uint64_t seed, uint64_t choice, uint64_t position);

}  // namespace fathom
