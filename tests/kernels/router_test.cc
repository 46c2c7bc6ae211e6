#include "kernels/router.h"

#include <fmt/format.h>

#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

struct Routed {
  std::vector<int32_t> expert;
  std::vector<float> weight, score;
};

Routed route_rows(Isa isa, Matrix<float> logits, RouterArgs args, int64_t active) {
  ThreadPool pool(1);
  Workspace workspace;
  Matrix<float> score(logits.rows, logits.cols), weight(logits.rows, active);
  Matrix<int32_t> expert(logits.rows, active);
  args.logits = logits;
  args.score = score;
  args.expert = expert;
  args.weight = weight;
  route({pool, workspace, isa}, args);
  return {expert.values, weight.values, score.values};
}

RouterArgs with_bias(std::span<const float> bias) {
  RouterArgs args;
  args.bias = bias;
  return args;
}

Matrix<float> one_row(std::vector<float> values) {
  Matrix<float> m(1, static_cast<int64_t>(values.size()));
  m.values = std::move(values);
  return m;
}

TEST(Router, GridOfShapesAndScores) {
  for (RouterScore kind :
       {RouterScore::kSqrtSoftplus, RouterScore::kSigmoid, RouterScore::kSoftmax}) {
    for (int64_t experts : {3, 8, 17, 384}) {
      const int64_t rows = 40, active = std::min<int64_t>(experts, 6);
      // Up to 30, so that both sides of the threshold at 20 are met.
      auto logits = random_matrix(rows, experts, 1, Values::kF32, 8, 3);
      const auto bias = random_vector(experts, 2, Values::kF32, 0.1f);
      const auto bias_image = random_vector(experts, 3, Values::kF32, 0.1f);
      std::vector<uint8_t> is_image(rows);
      for (int64_t t = 0; t < rows; ++t) is_image[t] = t % 3 == 0;
      // exp within 2 ulp, log1p 3, root halves both; a softmax adds the error of exp's argument.
      expect_grid(fmt::format("route {}", experts), {.relative = 2e-6, .absolute = 1e-37},
                  [&](const Context& c) {
                    Matrix<float> score(rows, experts, 1), weight(rows, active);
                    Matrix<int32_t> expert(rows, active);
                    route(c, {.logits = logits,
                              .kind = kind,
                              .temperature = 1.5f,
                              .bias = bias,
                              .bias_image = bias_image,
                              .is_image = is_image,
                              .routed_scale = 1.5f,
                              .score = score,
                              .expert = expert,
                              .weight = weight});
                    std::vector<float> out;
                    append<float>(out, score);
                    append<int32_t>(out, expert);
                    append<float>(out, weight);
                    return out;
                  });
    }
  }
}

TEST(Router, TiesGoToTheLowerExpertAndBiasOnlySelects) {
  const std::vector<float> no_bias(4, 0.0f), bias = {0, 0, 0, 5};
  for (Isa isa : available_isas()) {
    const Routed tied = route_rows(isa, one_row({1, 2, 2, 2}), with_bias(no_bias), 2);
    EXPECT_EQ(tied.expert, (std::vector<int32_t>{1, 2})) << isa_name(isa);
    EXPECT_FLOAT_EQ(tied.weight[0], 0.5f);
    const Routed biased = route_rows(isa, one_row({1, 2, 2, -3}), with_bias(bias), 2);
    EXPECT_EQ(biased.expert, (std::vector<int32_t>{3, 1})) << isa_name(isa);
    EXPECT_FLOAT_EQ(biased.weight[0] / biased.weight[1], biased.score[3] / biased.score[1]);
  }
}

TEST(Router, PictureRowsUseTheirOwnBias) {
  const std::vector<float> text = {0, 9, 0}, image = {0, 0, 9};
  const std::vector<uint8_t> is_image = {0, 1};
  Matrix<float> logits(2, 3);
  logits.values = {0, 0, 0, 0, 0, 0};
  RouterArgs args = with_bias(text);
  args.bias_image = image;
  args.is_image = is_image;
  for (Isa isa : available_isas()) {
    const Routed got = route_rows(isa, logits, args, 1);
    EXPECT_EQ(got.expert, (std::vector<int32_t>{1, 2})) << isa_name(isa);
  }
}

TEST(Router, OneExpertIsNotNormalised) {
  const std::vector<float> bias(2, 0.0f);
  RouterArgs scaled = with_bias(bias), raw = with_bias(bias);
  scaled.routed_scale = 1.5f;
  raw.normalise = false;
  for (Isa isa : available_isas()) {
    const Routed one = route_rows(isa, one_row({30, 1}), scaled, 1);
    EXPECT_FLOAT_EQ(one.weight[0], 1.5f * std::sqrt(30.0f)) << "above 20 softplus(t) is t";
    const Routed two = route_rows(isa, one_row({30, 25}), raw, 2);
    EXPECT_FLOAT_EQ(two.weight[1], 5.0f);
  }
}

}  // namespace
}  // namespace fathom::kernels
