#include "kernels/expert_ffn.h"

#include "kernels/linear.h"
#include "kernels/quantise.h"
#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

// Random bytes are valid FP4 weights; scales near 2^-3 keep sums of order 1.
struct Fp4Weight {
  std::vector<uint8_t> data, scales;
  WeightView view;
  Fp4Weight(int64_t rows, int64_t cols, uint32_t seed)
      : data(rows * cols / 2), scales(rows * cols / 32) {
    std::mt19937 random(seed);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : scales) byte = static_cast<uint8_t>(122 + random() % 3);
    view = {.dtype = DType::kI8,
            .rows = rows,
            .cols = cols,
            .data = data.data(),
            .scales = scales.data()};
  }
};

TEST(ExpertFfn, AddsToTheRowsThatWereRouted) {
  const int64_t width = 64, hidden = 96;
  const Fp4Weight w1(hidden, width, 1), w3(hidden, width, 2), w2(width, hidden, 3);
  auto x = random_matrix(9, width, 4, Values::kBf16, 1, 7);
  ref::quantise({.x = x, .y = x});
  const std::vector<int32_t> rows = {7, 0, 3};
  const std::vector<float> weight = {0.5f, 1.25f, -1.0f};
  // As one linear and an activation: sums of 96 products of size 1, an exp, two roundings.
  const Tolerance tolerance = {.relative = 1e-5, .absolute = 1e-4};
  for (bool is_routed : {true, false}) {
    expect_grid("expert_ffn", tolerance, [&](const Context& c) {
      Matrix<float> y(9, width, 1);
      for (int64_t t = 0; t < 9; ++t) std::fill_n(y.row(t), width, 0.25f);
      ExpertFfnArgs args{.x = x, .w1 = w1.view, .w2 = w2.view, .w3 = w3.view, .limit = 2, .y = y};
      if (is_routed) {
        args.row = rows;
        args.weight = weight;
      }
      expert_ffn(c, args);
      EXPECT_EQ(y.row(1)[5] == 0.25f, is_routed) << "row 1 belongs to nobody when routed";
      std::vector<float> out;
      append<float>(out, y);
      return out;
    });
  }
}

// One row each: the products share a job; unequal rows: one expert after another.
TEST(ExpertFfn, ExpertsTogetherEqualOneAfterAnother) {
  const int64_t width = 64, hidden = 96;
  auto x = random_matrix(9, width, 4, Values::kBf16, 1, 7);
  ref::quantise({.x = x, .y = x});
  std::vector<Fp4Weight> weights;
  for (uint32_t seed = 1; seed <= 9; ++seed)
    weights.emplace_back(seed % 3 == 0 ? width : hidden, seed % 3 == 0 ? hidden : width, seed);
  const std::vector<int32_t> rows = {7, 0, 3};
  const std::vector<float> weight = {0.5f, 1.25f, -1.0f};
  for (Isa isa : available_isas()) {
    for (size_t first_rows : {1, 2}) {
      ThreadPool pool(2);
      Workspace workspace;
      const Context context{pool, workspace, isa};
      const auto run = [&](bool is_together) {
        Matrix<float> y(9, width, 1);
        for (int64_t t = 0; t < 9; ++t) std::fill_n(y.row(t), width, 0.25f);
        std::vector<ExpertFfnArgs> experts;
        for (size_t e = 0; e < 3; ++e)
          experts.push_back({.x = x,
                             .row = std::span(rows).first(e == 0 ? first_rows : 1),
                             .weight = std::span(weight).first(e == 0 ? first_rows : 1),
                             .w1 = weights[3 * e].view,
                             .w2 = weights[3 * e + 2].view,
                             .w3 = weights[3 * e + 1].view,
                             .limit = 2,
                             .quantise_activations = true,
                             .round_bf16 = true,
                             .y = y});
        if (is_together) expert_ffns(context, experts);
        for (const ExpertFfnArgs& args : experts)
          if (!is_together) expert_ffn(context, args);
        std::vector<float> out;
        append<float>(out, y);
        return out;
      };
      expect_same_bits(run(true), run(false), std::string(isa_name(isa)));
    }
  }
}

// The same row alone, among others and at another place: the same bits.
TEST(ExpertFfn, ARowDoesNotSeeItsNeighbours) {
  const int64_t width = 64, hidden = 96;
  const Fp4Weight w1(hidden, width, 1), w3(hidden, width, 2), w2(width, hidden, 3);
  auto x = random_matrix(20, width, 5);
  const std::vector<float> weights(20, 0.75f);
  const auto run = [&](Isa isa, std::vector<int32_t> rows) {
    ThreadPool pool(2);
    Workspace workspace;
    Matrix<float> y(20, width);
    std::fill(y.values.begin(), y.values.end(), 0.0f);
    expert_ffn({pool, workspace, isa}, {.x = x,
                                        .row = rows,
                                        .weight = std::span(weights).first(rows.size()),
                                        .w1 = w1.view,
                                        .w2 = w2.view,
                                        .w3 = w3.view,
                                        .limit = 10,
                                        .quantise_activations = true,
                                        .round_bf16 = true,
                                        .y = y});
    return std::vector<float>(y.row(11), y.row(11) + width);
  };
  for (Isa isa : available_isas()) {
    const auto alone = run(isa, {11});
    expect_same_bits(run(isa, {3, 11}), alone, std::string(isa_name(isa)));
    expect_same_bits(run(isa, {11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16}), alone,
                     std::string(isa_name(isa)));
  }
}

}  // namespace
}  // namespace fathom::kernels
