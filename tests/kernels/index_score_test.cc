#include "kernels/index_score.h"

#include <fmt/format.h>

#include "kernels/quantise.h"
#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

constexpr float kNever = -INFINITY;

// Keys as the cache holds them: quantised, in bf16 or f32.
struct Keys {
  Matrix<float> f32;
  std::vector<uint16_t> bf16;
  RowsView view(bool as_bf16) const {
    return {.dtype = as_bf16 ? DType::kBF16 : DType::kF32,
            .data = as_bf16 ? static_cast<const void*>(bf16.data()) : f32.values.data(),
            .rows = f32.rows,
            .cols = f32.cols,
            .stride = f32.cols};
  }
};

Matrix<float> quantised(int64_t rows, int64_t cols, uint32_t seed) {
  auto x = random_matrix(rows, cols, seed);
  ref::quantise({.x = x, .y = x, .quantiser = Quantiser::kFp4Block32});
  return x;
}

Keys make_keys(int64_t rows, int64_t cols, uint32_t seed) {
  Keys keys{quantised(rows, cols, seed), {}};
  for (float value : keys.f32.values) keys.bf16.push_back(f32_to_bf16(value));
  return keys;
}

TEST(IndexScore, GridOfShapes) {
  for (int64_t heads : {1, 4, 5, 32}) {
    for (int64_t groups : {1, 15, 16, 40, 130}) {
      const int64_t rows = 6, dim = 64;
      auto q = quantised(rows, heads * dim, 1);
      auto weight = random_matrix(rows, heads, 2, Values::kBf16, 1, 3);
      const Keys keys = make_keys(groups, dim, 3);
      const std::vector<int64_t> visible = {0, 1, groups / 2, groups - 1, groups, groups};
      for (bool as_bf16 : {true, false}) {
        // The dots are exact and the sum over heads has one order on both sides.
        expect_grid(fmt::format("index_score {} {}", heads, groups), {}, [&](const Context& c) {
          Matrix<float> score(rows, groups, 2);
          index_score(c, {.q = q,
                          .weight = weight,
                          .kappa = 0.0625f,
                          .keys = keys.view(as_bf16),
                          .visible = visible,
                          .score = score});
          std::vector<float> out;
          append<float>(out, score);
          return out;
        });
      }
    }
  }
}

TEST(IndexScore, GroupsThatAreNotVisibleScoreMinusInfinity) {
  auto q = quantised(2, 64, 1);
  auto weight = random_matrix(2, 1, 2);
  const Keys keys = make_keys(20, 64, 3);
  for (Isa isa : available_isas()) {
    ThreadPool pool(1);
    Workspace workspace;
    Matrix<float> score(2, 20);
    const std::vector<int64_t> visible = {0, 17};
    index_score(
        {pool, workspace, isa},
        {.q = q, .weight = weight, .keys = keys.view(true), .visible = visible, .score = score});
    for (int64_t j = 0; j < 20; ++j) {
      EXPECT_EQ(score.row(0)[j], kNever);
      EXPECT_EQ(score.row(1)[j] == kNever, j >= 17) << isa_name(isa) << " " << j;
    }
  }
}

std::vector<int32_t> select(Isa isa, const std::vector<float>& score, int64_t visible, int64_t k,
                            const std::vector<uint8_t>& candidates = {}) {
  ThreadPool pool(1);
  Workspace workspace;
  const int64_t groups = static_cast<int64_t>(score.size());
  const int64_t blocks = static_cast<int64_t>(candidates.size());
  Matrix<int32_t> index(1, k);
  const std::vector<int64_t> visible_rows = {visible};
  SelectTopArgs args{
      .score = {score.data(), 1, groups}, .visible = visible_rows, .block_size = 2, .index = index};
  if (blocks > 0) args.candidates = {candidates.data(), 1, blocks};
  select_top({pool, workspace, isa}, args);
  return index.values;
}

TEST(SelectTop, TakesTheBestAscendingAndLowerGroupsOnTies) {
  using List = std::vector<int32_t>;
  for (Isa isa : available_isas()) {
    EXPECT_EQ(select(isa, {1, 5, 3, 4}, 4, 2), (List{1, 3}));
    EXPECT_EQ(select(isa, {0, 0, 0, 0}, 4, 2), (List{0, 1})) << "ties";
    EXPECT_EQ(select(isa, {-0.0f, 0, -0.0f, 1}, 4, 2), (List{0, 3})) << "the two zeros are equal";
    EXPECT_EQ(select(isa, {-1, -3, -2}, 3, 2), (List{0, 2})) << "negative scores";
    EXPECT_EQ(select(isa, {1, 5, kNever, kNever}, 2, 3), (List{0, 1, -1})) << "fewer than K";
    EXPECT_EQ(select(isa, {9, 9, 9}, 0, 2), (List{-1, -1})) << "nothing visible";
    EXPECT_EQ(select(isa, {9, 1, 2, 8, 3}, 5, 3, {0, 1, 1}), (List{2, 3, 4})) << "candidates";
    EXPECT_EQ(select(isa, {9, 1, 2, 8, 3}, 5, 3, {0, 0, 1}), (List{4, -1, -1}));
  }
}

std::vector<uint8_t> keep(Isa isa, const std::vector<float>& score, int64_t visible,
                          int64_t blocks_max) {
  ThreadPool pool(1);
  Workspace workspace;
  const int64_t groups = static_cast<int64_t>(score.size());
  Matrix<uint8_t> kept(1, (groups + 1) / 2);
  const std::vector<int64_t> visible_rows = {visible};
  candidate_blocks({pool, workspace, isa}, {.score = {score.data(), 1, groups},
                                            .visible = visible_rows,
                                            .block_size = 2,
                                            .blocks_max = blocks_max,
                                            .keep = kept});
  return kept.values;
}

TEST(CandidateBlocks, TheNewestVisibleBlockAlwaysWins) {
  using Mask = std::vector<uint8_t>;
  for (Isa isa : available_isas()) {
    EXPECT_EQ(keep(isa, {9, 0, 5, 5, 1, 1, 0}, 7, 2), (Mask{1, 0, 0, 1}));
    EXPECT_EQ(keep(isa, {9, 0, 5, 5, 1, 1, kNever}, 6, 2), (Mask{1, 0, 1, 0}));
    EXPECT_EQ(keep(isa, {3, 3, 3, 3, 3, 3}, 6, 2), (Mask{1, 0, 1})) << "lower block on ties";
    EXPECT_EQ(keep(isa, {3, kNever, kNever}, 1, 2), (Mask{1, 0})) << "fewer than the pool";
    EXPECT_EQ(keep(isa, {kNever, kNever}, 0, 2), (Mask{0})) << "nothing visible";
  }
}

// Few distinct scores make ties at every cut; stable sorting in ref is the definition.
TEST(SelectTop, AgreesWithRefOnScoresFullOfTies) {
  std::mt19937 random(7);
  for (int64_t groups : {1, 9, 64, 333}) {
    Matrix<float> score(30, groups, 2);
    std::vector<int64_t> visible;
    for (int64_t t = 0; t < 30; ++t) {
      visible.push_back(static_cast<int64_t>(random() % (groups + 1)));
      for (int64_t j = 0; j < groups; ++j)
        score.row(t)[j] = j < visible[t] ? static_cast<float>(random() % 7) - 3 : kNever;
    }
    for (int64_t k : {1, 8, 50}) {
      expect_grid(fmt::format("select {} of {}", k, groups), {}, [&](const Context& c) {
        const int64_t blocks = (groups + 7) / 8;
        Matrix<uint8_t> kept(30, blocks);
        Matrix<int32_t> index(30, k), restricted(30, k);
        candidate_blocks(c, {.score = score, .visible = visible, .blocks_max = 3, .keep = kept});
        select_top(c, {.score = score, .visible = visible, .index = index});
        select_top(c,
                   {.score = score, .visible = visible, .candidates = kept, .index = restricted});
        std::vector<float> out;
        append<uint8_t>(out, kept);
        append<int32_t>(out, index);
        append<int32_t>(out, restricted);
        return out;
      });
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
