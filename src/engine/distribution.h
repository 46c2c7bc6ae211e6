// What one token is drawn from, after every warp: tokens with their weights. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace fathom {

struct WeightedToken {
  double weight = 0;  // > 0, not normalised
  TokenId token = 0;
};

class Distribution {
 public:
  Distribution() = default;
  // `tokens` in ascending order of id, at least one.
  explicit Distribution(std::vector<WeightedToken> tokens);
  static Distribution certain(TokenId token) { return Distribution({{1.0, token}}); }

  const std::vector<WeightedToken>& tokens() const { return tokens_; }
  // 0 for a token that the warps cut away.
  double probability(TokenId token) const;
  // The token at `uniform` in [0, 1) of the cumulated weights, in order of id.
  TokenId draw(double uniform) const;

 private:
  std::vector<WeightedToken> tokens_;
  double total_ = 0;
};

// max(target - drafted, 0), normalised by use: what a rejected draft is replaced from (spec §7.4).
// `target` itself where less than 1e-8 of it is left.
Distribution residual(const Distribution& target, const Distribution& drafted);

}  // namespace fathom
