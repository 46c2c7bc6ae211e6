#include "kernels/hyper_connection.h"

#include <functional>

#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

// Coefficients of one token whose products are m: fn maps the unit channel i to m[i], and x is 1
// everywhere it matters, scaled so that its rms is 1.
struct Mixed {
  std::vector<float> pre, post, comb;
};

Mixed mix(Isa isa, const std::vector<float>& m, int iterations) {
  ThreadPool pool(1);
  Workspace workspace;
  const int64_t width = 8;
  Matrix<float> x(1, 4 * width);
  std::fill(x.values.begin(), x.values.end(), 1.0f);
  Matrix<float> fn(24, 4 * width);
  std::fill(fn.values.begin(), fn.values.end(), 0.0f);
  for (int i = 0; i < 24; ++i) fn.row(i)[i % 32] = m[i];
  const std::vector<float> base(24, 0.0f), scale(3, 1.0f);
  Matrix<float> pre(1, 4), post(1, 4), comb(1, 16);
  hc_mix({pool, workspace, isa}, {.x = x,
                                  .fn = fn,
                                  .base = base,
                                  .scale = scale,
                                  .sinkhorn_iterations = iterations,
                                  .pre = pre,
                                  .post = post,
                                  .comb = comb});
  return {pre.values, post.values, comb.values};
}

std::vector<float> sines() {
  std::vector<float> m(24);
  for (int i = 0; i < 24; ++i) m[i] = std::sin(static_cast<float>(i));
  return m;
}

TEST(HcMix, VectorOfTheSpecification) {
  const float pre[] = {0.500001f, 0.698776f, 0.712857f, 0.535223f};
  const float post[] = {0.638682f, 0.554187f, 0.861194f, 1.317166f};
  const float comb[] = {0.434308f, 0.310473f, 0.155308f, 0.099911f,
                        0.057286f, 0.189876f, 0.437142f, 0.315694f};
  for (Isa isa : available_isas()) {
    const Mixed got = mix(isa, sines(), 20);
    for (int s = 0; s < 4; ++s) {
      // Six decimals are given.
      EXPECT_NEAR(got.pre[s], pre[s], 6e-7) << isa_name(isa) << s;
      EXPECT_NEAR(got.post[s], post[s], 6e-7) << isa_name(isa) << s;
    }
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(got.comb[i], comb[i], 6e-7) << isa_name(isa) << i;
  }
}

TEST(HcMix, TheLastStepNormalisesColumns) {
  // A matrix far from doubly stochastic: after one iteration its rows are still off.
  std::vector<float> m = sines();
  for (float& value : m) value *= 5;
  for (Isa isa : available_isas()) {
    for (int iterations : {1, 2, 20}) {
      const Mixed got = mix(isa, m, iterations);
      double row_error = 0;
      for (int k = 0; k < 4; ++k) {
        double column = 0, row = 0;
        for (int j = 0; j < 4; ++j) {
          column += got.comb[j * 4 + k];
          row += got.comb[k * 4 + j];
        }
        EXPECT_NEAR(column, 1, 4e-6) << isa_name(isa) << " column " << k;  // hc_eps is 1e-6
        row_error = std::max(row_error, std::fabs(row - 1));
      }
      if (iterations == 1) {
        EXPECT_GT(row_error, 0.1);
      }
    }
  }
}

TEST(HcExpand, TheFirstIndexOfCombIsTheSource) {
  for (Isa isa : available_isas()) {
    ThreadPool pool(1);
    Workspace workspace;
    Matrix<float> x(1, 2), y(1, 1), post(1, 2), comb(1, 4), out(1, 2);
    x.values = {10, 100};
    y.values = {1000};
    post.values = {0, 1};
    comb.values = {1, 2, 3, 4};  // source 0 -> (1, 2), source 1 -> (3, 4)
    hc_expand({pool, workspace, isa}, {.y = y, .x = x, .post = post, .comb = comb, .out = out});
    EXPECT_EQ(out.values, (std::vector<float>{310, 1420})) << isa_name(isa);
  }
}

// A row alone and in a batch, and at each place of it: the same bits.
TEST(HcMix, ARowDoesNotSeeItsNeighbours) {
  const int64_t width = 300;
  auto x = random_matrix(37, 4 * width, 1);
  auto fn = random_matrix(24, 4 * width, 2, Values::kF32, 0.05f);
  const auto base = random_vector(24, 3), scale = random_vector(3, 4);
  const auto run = [&](Isa isa, int threads, int64_t first, int64_t count) {
    ThreadPool pool(threads);
    Workspace workspace;
    Matrix<float> pre(count, 4), post(count, 4), comb(count, 16);
    hc_mix({pool, workspace, isa}, {.x = x.view().rows_from(first, count),
                                    .fn = fn,
                                    .base = base,
                                    .scale = scale,
                                    .pre = pre,
                                    .post = post,
                                    .comb = comb});
    return comb.values;
  };
  for (Isa isa : available_isas()) {
    const auto whole = run(isa, 1, 0, 37);
    for (int64_t t : {0, 1, 16, 36}) {
      const auto alone = run(isa, 3, t, 1);
      expect_same_bits(alone, {whole.begin() + t * 16, whole.begin() + (t + 1) * 16},
                       std::string(isa_name(isa)));
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
