// The comparer must fail when it should: everything else of verify rests on it.
#include "verify/tally.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace fathom::verify {
namespace {

constexpr std::array kJudged = {Limit::kEqual,      Limit::kStoredBf16, Limit::kChain,
                                Limit::kFull,       Limit::kSmoothTap,  Limit::kSmoothLogits,
                                Limit::kVisionTower};

// bf16-representable values of several magnitudes.
std::vector<float> sample(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 37) % 101 - 50) * 0.03125F);
  return values;
}

Verdict compare(const std::vector<float>& got, const std::vector<float>& want, Limit limit,
                int64_t cols = 4, DType dtype = DType::kBF16) {
  Tally tally("x", limit);
  tally.add(got, want, cols, dtype, "x");
  return tally.verdict();
}

TEST(Tally, EqualNumbersPassEveryLimit) {
  const std::vector<float> values = sample(400);
  for (const Limit limit : kJudged) EXPECT_EQ(compare(values, values, limit), Verdict::kPass);
}

TEST(Tally, OneNanFailsEveryLimitEvenWhenOnlyPrinted) {
  const std::vector<float> want = sample(40000);
  std::vector<float> got = want;
  got[17] = std::numeric_limits<float>::quiet_NaN();
  for (const Limit limit : kJudged) EXPECT_EQ(compare(got, want, limit), Verdict::kFail);
  EXPECT_EQ(compare(got, want, Limit::kPrinted), Verdict::kFail);
  EXPECT_EQ(compare(got, got, Limit::kPrinted), Verdict::kFail);
}

TEST(Tally, AnInfinityOnOneSideFails) {
  std::vector<float> want = sample(400);
  std::vector<float> got = want;
  want[3] = got[3] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(compare(got, want, Limit::kFull), Verdict::kPass);
  got[3] = 0;
  for (const Limit limit : kJudged) EXPECT_EQ(compare(got, want, limit), Verdict::kFail);
}

TEST(Tally, ARowOfZerosFails) {
  const std::vector<float> want = sample(400);
  std::vector<float> got = want;
  std::fill_n(got.begin() + 8, 8, 0.0F);
  for (const Limit limit : kJudged) EXPECT_EQ(compare(got, want, limit), Verdict::kFail);
}

TEST(Tally, ValuesShiftedByOnePlaceFail) {
  const std::vector<float> want = sample(400);
  std::vector<float> got(want.begin() + 1, want.end());
  got.push_back(want.front());
  for (const Limit limit : kJudged) EXPECT_EQ(compare(got, want, limit), Verdict::kFail);
}

TEST(Tally, MissingAndSurplusRowsFail) {
  const std::vector<float> want = sample(400);
  const std::vector<float> fewer(want.begin(), want.end() - 4);
  for (const Limit limit : kJudged) {
    EXPECT_EQ(compare(fewer, want, limit), Verdict::kFail);
    EXPECT_EQ(compare(want, fewer, limit), Verdict::kFail);
    EXPECT_EQ(compare({}, want, limit), Verdict::kFail);
  }
}

// The limit is 1e-4; what borders explain is 2.4e-4 of one quantity and 1e-4 of a case, with four
// standard deviations of chance.
TEST(Tally, StoredResultsMayDifferInFewNumbersByTwoUlp) {
  const std::vector<float> want(100000, 1.0F);
  const auto with = [&](int count, float value, Limit limit) {
    std::vector<float> got = want;
    std::fill_n(got.begin(), count, value);
    return compare(got, want, limit);
  };
  const float ulp = 1.0F / 128;  // of bf16 at 1
  EXPECT_EQ(with(10, 1 + 2 * ulp, Limit::kStoredBf16), Verdict::kPass);
  EXPECT_EQ(with(11, 1 + 2 * ulp, Limit::kStoredBf16), Verdict::kExplained);
  EXPECT_EQ(with(43, 1 + 2 * ulp, Limit::kStoredBf16), Verdict::kExplained);
  EXPECT_EQ(with(44, 1 + 2 * ulp, Limit::kStoredBf16), Verdict::kFail);
  EXPECT_EQ(with(1, 1 + 3 * ulp, Limit::kStoredBf16), Verdict::kFail);
  EXPECT_EQ(with(10, 1 + ulp, Limit::kAllStoredBf16), Verdict::kPass);
  EXPECT_EQ(with(22, 1 + ulp, Limit::kAllStoredBf16), Verdict::kExplained);
  EXPECT_EQ(with(23, 1 + ulp, Limit::kAllStoredBf16), Verdict::kFail);
  EXPECT_EQ(with(10, 1 + ulp, Limit::kChain), Verdict::kPass);
  EXPECT_EQ(with(1000, 1 + ulp, Limit::kChain), Verdict::kExplained);
  EXPECT_EQ(with(1200, 1 + ulp, Limit::kChain), Verdict::kFail);
  EXPECT_EQ(with(10, 1.2F, Limit::kChain), Verdict::kFail);
}

// Where a sum cancels nearly to nothing, its last bits are errors of the terms.
TEST(Tally, UlpsCountFromTheSizeOfTheRowOn) {
  std::vector<float> want(100, 1.0F);
  want[7] = 0x1p-22F;
  std::vector<float> got = want;
  got[7] = -0x1p-22F;
  EXPECT_EQ(compare(got, want, Limit::kStoredBf16, 100), Verdict::kExplained);
  EXPECT_EQ(compare(got, want, Limit::kStoredBf16, 1), Verdict::kFail) << "a row of its own";
  got[7] = 0x1p-16F;
  EXPECT_EQ(compare(got, want, Limit::kStoredBf16, 100), Verdict::kFail);
}

// A flipped code moves the whole of one row a little; a mistake moves a row a lot, or many rows.
TEST(Tally, AFlippedCodeMayMoveARowAndNoMore) {
  const std::vector<float> want(100 * 64, 1.0F);
  const auto with = [&](int rows, float value, Limit limit) {
    std::vector<float> got = want;
    std::fill_n(got.begin() + 64, rows * 64, value);
    return compare(got, want, limit, 64);
  };
  EXPECT_EQ(with(1, 1.125F, Limit::kQuantisedBf16), Verdict::kExplained);
  EXPECT_EQ(with(2, 1.0078125F, Limit::kQuantisedBf16), Verdict::kFail);
  EXPECT_EQ(with(1, 1.25F, Limit::kQuantisedBf16), Verdict::kFail);
  EXPECT_EQ(with(1, 1.0078125F, Limit::kStoredBf16), Verdict::kFail);
}

TEST(Tally, OneWrongListEntryFails) {
  const std::vector<int32_t> want = {1, 2, 3, -1};
  Tally tally("topk", Limit::kEqual);
  tally.add(want, want, 4, "topk");
  EXPECT_EQ(tally.verdict(), Verdict::kPass);
  tally.add(std::vector<int32_t>{1, 2, 4, -1}, want, 4, "topk", 1);
  EXPECT_EQ(tally.verdict(), Verdict::kFail);
  EXPECT_EQ(tally.worst(), "topk row 1");
}

TEST(Tally, CountsUlpsAcrossZeroAndPowersOfTwo) {
  Tally tally("x", Limit::kPrinted);
  const float below = std::nextafter(1.0F, 0.0F);
  tally.add(std::vector<float>{1.0F}, std::vector<float>{below}, 1, DType::kF32, "x");
  EXPECT_EQ(tally.ulp_max(), 1);
  const float tiny = std::numeric_limits<float>::denorm_min();
  tally.add(std::vector<float>{tiny}, std::vector<float>{-tiny}, 1, DType::kF32, "x");
  EXPECT_EQ(tally.ulp_max(), 2);
}

}  // namespace
}  // namespace fathom::verify
