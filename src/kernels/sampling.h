// From logits to a distribution: what the engine's sampler does per token. Spec §8.4, http-api
// §5.6. Plain C++, the same on every ISA; called from the engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace fathom::kernels {

// The first index with the largest value.
TokenId argmax(std::span<const float> logits);

struct SamplingFilter {
  float temperature = 1;  // > 0
  int64_t top_k = 0;      // <= 0: off
  float top_p = 1;        // >= 1: off
  float min_p = 0;        // <= 0: off
};

struct TokenProbability {
  TokenId token = 0;
  float probability = 0;
};

// temperature → top_k → top_p → min_p, renormalised. The tokens left, most likely first (ties:
// lower id), summing to 1; never empty. top_p keeps the shortest prefix whose mass reaches it;
// min_p keeps tokens with at least that share of the best one's probability. A logit of -inf has
// probability 0.
void filter_distribution(std::span<const float> logits, const SamplingFilter& filter,
                         std::vector<TokenProbability>* kept);

// The token at `uniform` in [0, 1) of the cumulative distribution, in the order given.
TokenId draw(std::span<const TokenProbability> kept, double uniform);

// log Σ exp(logits), in double: the natural log-probability of token i is logits[i] minus this.
double log_sum_exp(std::span<const float> logits);

}  // namespace fathom::kernels
