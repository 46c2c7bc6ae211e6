#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace fathom {
namespace {

TokenId pick(const SamplerOptions& options, std::vector<float> logits, int64_t position = 0,
             std::vector<TokenId> prompt = {}) {
  const std::vector<TokenId> generated(static_cast<size_t>(position), 0);
  return Sampler(options).pick(logits, {prompt, generated, true})->token;
}

// Shares of `draws` picks, each at another position.
std::map<TokenId, double> shares(const SamplingParams& params, const std::vector<float>& logits,
                                 int draws) {
  std::map<TokenId, double> share;
  for (int i = 0; i < draws; ++i) {
    SamplerOptions options{params, {}, false, 0};
    options.params.seed = static_cast<uint64_t>(i);
    share[pick(options, logits)] += 1.0 / draws;
  }
  return share;
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfEquals) {
  EXPECT_EQ(pick({{.temperature = 0}, {}, false, 0}, {1, 7, 7, 2}), 1);
}

TEST(Sampler, DrawsInProportion) {
  // 4000 draws: a share has a standard deviation of at most 0.5 / sqrt(4000) = 0.008; four of them.
  const auto share = shares({}, {std::log(1.f), std::log(2.f), std::log(5.f)}, 4000);
  EXPECT_NEAR(share.at(0), 0.125, 0.032);
  EXPECT_NEAR(share.at(1), 0.25, 0.032);
  EXPECT_NEAR(share.at(2), 0.625, 0.032);
}

TEST(Sampler, TemperatureSharpens) {
  // Weights 1 and 4 become 1 and 16 at temperature one half.
  const auto share = shares({.temperature = 0.5}, {0, std::log(4.f)}, 4000);
  EXPECT_NEAR(share.at(1), 16.0 / 17, 0.032);
}

TEST(Sampler, TopKTopPAndMinPCut) {
  const std::vector<float> logits = {std::log(5.f), std::log(3.f), std::log(1.f), std::log(1.f)};
  EXPECT_EQ(shares({.top_k = 2}, logits, 300).size(), 2u);
  EXPECT_EQ(shares({.top_k = 3}, logits, 300).count(3), 0u) << "ties go to the lowest id";
  EXPECT_EQ(shares({.top_p = 0.79}, logits, 300).size(), 2u) << "0.5 + 0.3 reaches 0.79";
  EXPECT_EQ(shares({.top_p = 0.81}, logits, 300).size(), 3u);
  EXPECT_EQ(shares({.top_p = 0}, logits, 300).size(), 1u) << "0 keeps one";
  EXPECT_EQ(shares({.min_p = 0.5}, logits, 300).size(), 2u);
}

TEST(Sampler, SameSeedSamePositionSameToken) {
  std::vector<float> logits(1000);
  std::iota(logits.begin(), logits.end(), 0.f);
  for (float& logit : logits) logit = std::sin(logit);
  const SamplerOptions options{{.seed = 42}, {}, false, 0};
  for (int64_t position : {0, 1, 77})
    EXPECT_EQ(pick(options, logits, position), pick(options, logits, position));
  const SamplerOptions high{{.seed = 42 + (uint64_t{1} << 32)}, {}, false, 0};
  int differing = 0;
  for (int64_t position = 0; position < 20; ++position)
    differing += pick(options, logits, position) != pick(high, logits, position);
  EXPECT_GT(differing, 10) << "the upper half of the seed counts";
}

TEST(Sampler, BiasBansAndSparesProtectedTokens) {
  SamplerOptions options{{.temperature = 0, .logit_bias = {{1, -100}}}, {}, false, 0};
  EXPECT_EQ(pick(options, {1, 7, 3}), 2);
  options.protected_tokens = {1};
  EXPECT_EQ(pick(options, {1, 7, 3}), 1);
}

TEST(Sampler, PenaltiesCountWhatWasGenerated) {
  const SamplerOptions frequency{{.temperature = 0, .frequency_penalty = 0.5}, {}, false, 0};
  EXPECT_EQ(pick(frequency, {2, 1.2f}, 1), 0) << "2 - 0.5 is still more";
  EXPECT_EQ(pick(frequency, {2, 1.2f}, 2), 1) << "2 - 1.0 is less";
  const SamplerOptions presence{{.temperature = 0, .presence_penalty = 0.5}, {}, false, 0};
  EXPECT_EQ(pick(presence, {2, 1.2f}, 9), 0) << "once, however often";
  const SamplerOptions repetition{{.temperature = 0, .repetition_penalty = 2}, {}, false, 0};
  EXPECT_EQ(pick(repetition, {2, 1.2f}, 0, {0}), 1) << "looks at the prompt too";
}

TEST(Sampler, LogprobsAreOfTheUntouchedLogits) {
  SamplerOptions options{{.temperature = 0, .logit_bias = {{2, -100}}}, {}, true, 3};
  std::vector<float> logits = {0, std::log(2.f), std::log(5.f), -1e30f};
  const auto sampled = Sampler(options).pick(logits, {{}, {}, true});
  ASSERT_TRUE(sampled.is_ok());
  EXPECT_EQ(sampled->token, 1);
  // f32 logits of magnitude 2 carry 2^-23 each.
  EXPECT_NEAR(sampled->logprob, std::log(2.0 / 8), 1e-6);
  ASSERT_EQ(sampled->top.size(), 3u);
  EXPECT_EQ(sampled->top[0].token, 2);
  EXPECT_NEAR(sampled->top[0].logprob, std::log(5.0 / 8), 1e-6);
  EXPECT_EQ(sampled->top[2].token, 0);
}

TEST(Sampler, RefusesValuesThatAreNotFinite) {
  std::vector<float> logits(40, 1.f);
  logits[33] = NAN;
  const auto result = Sampler({{}, {}, false, 0}).pick(logits, {{}, {}, true});
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().code(), Code::kInternal);
}

}  // namespace
}  // namespace fathom
