// Topic: exact speculative sampling (spec §7.4). Tokens that come out of draft and judge have the
// distribution of plain sampling from the target, under every warp.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/sampling.h"

namespace fathom {
namespace {

constexpr int kDraws = 100'000;
const std::vector<float> kTarget = {2.1f, 0.3f, 1.7f, -0.5f, 0.9f, 1.2f, -2.0f, 0.0f};
const std::vector<float> kDrafter = {0.4f, 1.9f, 1.5f, 0.2f, -1.0f, 1.3f, 0.7f, -0.3f};
const std::vector<TokenId> kPrompt = {2, 5};
const std::vector<TokenId> kGenerated = {0, 0, 2, 4};

using Counts = std::vector<int64_t>;

SamplerOptions options_of(SamplingParams params, int seed) {
  params.seed = static_cast<uint64_t>(seed);
  return {std::move(params), {}, false, 0};
}

const SamplingContext kContext = {kPrompt, kGenerated, true};

// Each token's probability in plain sampling, counted exactly: the draw walks through the
// cumulated weights, so a fine grid of seeds is not needed; the sampler's own draft() shows them.
std::vector<double> plain_shares(const SamplingParams& params) {
  std::vector<float> logits = kTarget;
  const Draft draft = *Sampler(options_of(params, 0)).draft(logits, kContext);
  std::vector<double> shares;
  for (TokenId t = 0; t < std::ssize(kTarget); ++t)
    shares.push_back(draft.distribution.probability(t));
  return shares;
}

// `twist` may change what judge() believes the draft was drawn from.
template <typename Twist>
Counts speculative_counts(const SamplingParams& params, const Twist& twist) {
  Counts counts(kTarget.size());
  for (int seed = 0; seed < kDraws; ++seed) {
    Sampler sampler(options_of(params, seed));
    std::vector<float> drafter = kDrafter, target = kTarget;
    Draft draft = *sampler.draft(drafter, kContext);
    twist(&draft);
    ++counts[static_cast<size_t>(sampler.judge(draft, target, kContext)->token)];
  }
  return counts;
}

// Pearson's statistic, and how many degrees of freedom it has.
struct ChiSquare {
  double value = 0;
  int freedom = -1;
};

ChiSquare chi_square(const Counts& counts, const std::vector<double>& shares) {
  ChiSquare out;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * kDraws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " was cut away";
      continue;
    }
    out.value += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
    ++out.freedom;
  }
  return out;
}

// The value that a right sampler exceeds once in a million runs (Wilson and Hilferty).
double limit(int freedom) {
  const double k = freedom, z = 4.753;
  return k * std::pow(1 - 2 / (9 * k) + z * std::sqrt(2 / (9 * k)), 3);
}

struct Warp {
  const char* name;
  SamplingParams params;
};

class SpeculativeSampling : public ::testing::TestWithParam<Warp> {};

TEST_P(SpeculativeSampling, HasTheDistributionOfPlainSampling) {
  const SamplingParams& params = GetParam().params;
  const ChiSquare found =
      chi_square(speculative_counts(params, [](Draft*) {}), plain_shares(params));
  ASSERT_GT(found.freedom, 0);
  EXPECT_LT(found.value, limit(found.freedom));
}

INSTANTIATE_TEST_SUITE_P(Warps, SpeculativeSampling,
                         ::testing::Values(Warp{"None", {}}, Warp{"Cold", {.temperature = 0.6}},
                                           Warp{"Hot", {.temperature = 1.7}},
                                           Warp{"TopK", {.top_k = 3}}, Warp{"TopP", {.top_p = 0.8}},
                                           Warp{"MinP", {.min_p = 0.2}},
                                           Warp{"FrequencyPenalty", {.frequency_penalty = 0.7}},
                                           Warp{"PresencePenalty", {.presence_penalty = 0.9}},
                                           Warp{"RepetitionPenalty", {.repetition_penalty = 1.5}},
                                           Warp{"Bias", {.logit_bias = {{1, 2.5f}, {0, -1.0f}}}},
                                           Warp{"All",
                                                {.temperature = 0.8,
                                                 .top_k = 6,
                                                 .top_p = 0.9,
                                                 .min_p = 0.05,
                                                 .frequency_penalty = 0.3,
                                                 .presence_penalty = 0.2,
                                                 .repetition_penalty = 1.2,
                                                 .logit_bias = {{3, 2.0f}}}}),
                         [](const auto& info) { return info.param.name; });

TEST(SpeculativeSamplingFaults, AWrongDraftDistributionIsNoticed) {
  // The drafter draws with a warp, and tells the distribution without it.
  const SamplingParams params = {.temperature = 0.6};
  std::vector<float> logits = kDrafter;
  const Draft unwarped = *Sampler(options_of({}, 0)).draft(logits, kContext);
  const Counts counts = speculative_counts(
      params, [&](Draft* draft) { draft->distribution = unwarped.distribution; });
  const ChiSquare found = chi_square(counts, plain_shares(params));
  EXPECT_GT(found.value, 10 * limit(found.freedom));
}

TEST(SpeculativeSamplingFaults, APenaltyCountedTwiceIsNoticed) {
  const SamplingParams params = {.frequency_penalty = 0.7};
  Counts counts(kTarget.size());
  std::vector<TokenId> twice = kGenerated;
  twice.push_back(kGenerated.back());  // an accepted token, counted as draft and as answer
  for (int seed = 0; seed < kDraws; ++seed) {
    Sampler sampler(options_of(params, seed));
    std::vector<float> drafter = kDrafter, target = kTarget;
    const Draft draft = *sampler.draft(drafter, kContext);
    ++counts[static_cast<size_t>(sampler.judge(draft, target, {kPrompt, twice, true})->token)];
  }
  const ChiSquare found = chi_square(counts, plain_shares(params));
  EXPECT_GT(found.value, 10 * limit(found.freedom));
}

TEST(SpeculativeSampling, AtTemperatureZeroOnlyTheTargetsPeakIsAccepted) {
  Sampler sampler(options_of({.temperature = 0}, 5));
  for (TokenId drafted = 0; drafted < std::ssize(kTarget); ++drafted) {
    std::vector<float> target = kTarget;
    const Draft draft{drafted, Distribution::certain(drafted)};
    EXPECT_EQ(sampler.judge(draft, target, kContext)->token, 0);
  }
}

TEST(SpeculativeSampling, EqualDistributionsAcceptEveryDraft) {
  for (int seed = 0; seed < 1000; ++seed) {
    Sampler sampler(options_of({.temperature = 0.9, .top_p = 0.95}, seed));
    std::vector<float> drafter = kTarget, target = kTarget;
    const Draft draft = *sampler.draft(drafter, kContext);
    ASSERT_EQ(sampler.judge(draft, target, kContext)->token, draft.token);
  }
}

TEST(SpeculativeSampling, ADraftWithALogitThatIsNotFiniteIsAnError) {
  std::vector<float> logits(8, NAN);
  EXPECT_FALSE(Sampler(options_of({}, 0)).draft(logits, kContext).is_ok());
}

}  // namespace
}  // namespace fathom
