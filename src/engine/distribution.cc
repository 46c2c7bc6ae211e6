#include "engine/distribution.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fathom {

namespace {

constexpr double kResidualMin = 1e-8;  // spec §7.4

}  // namespace

Distribution::Distribution(std::vector<WeightedToken> tokens) : tokens_(std::move(tokens)) {
  FATHOM_CHECK(!tokens_.empty(), "a distribution over no token");
  for (const WeightedToken& t : tokens_) total_ += t.weight;
}

double Distribution::probability(TokenId token) const {
  const auto at =
      std::lower_bound(tokens_.begin(), tokens_.end(), token,
                       [](const WeightedToken& t, TokenId wanted) { return t.token < wanted; });
  return at != tokens_.end() && at->token == token ? at->weight / total_ : 0;
}

TokenId Distribution::draw(double uniform) const {
  double left = total_ * uniform;
  for (const WeightedToken& t : tokens_) {
    left -= t.weight;
    if (left < 0) return t.token;
  }
  return tokens_.back().token;  // rounding left a crumb
}

Distribution residual(const Distribution& target, const Distribution& drafted) {
  std::vector<WeightedToken> left;
  double total = 0;
  for (const WeightedToken& t : target.tokens()) {
    const double more = target.probability(t.token) - drafted.probability(t.token);
    if (more <= 0) continue;
    left.push_back({more, t.token});
    total += more;
  }
  return total > kResidualMin ? Distribution(std::move(left)) : target;
}

}  // namespace fathom
