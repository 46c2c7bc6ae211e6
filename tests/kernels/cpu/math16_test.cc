// The shared exp and log1p against the C library in double. Compiled here as a fourth, portable
// ISA; the op grid shows that the others give the same bits.
#define FATHOM_ISA math16_test
#define FATHOM_ISA_BITS 0
#include "kernels/cpu/math16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace fathom::kernels::math16_test {
namespace {

// Distance of `got` from the exact value, in units of the last place of its nearest float.
double ulps(float got, double exact) {
  const float nearest = static_cast<float>(exact);
  if (got == nearest) return 0;
  const double unit = std::nextafterf(std::fabs(nearest), INFINITY) - std::fabs(nearest);
  return std::fabs(got - exact) / unit;
}

float exp_one(float x) {
  return exp_of(splat(x)).v[0];
}
float log1p_one(float x) {
  return log1p_of(splat(x)).v[0];
}

TEST(Math16, ExpIsWithinTwoUlp) {
  double worst = 0;
  for (float x = -103.0f; x < 88.7f; x += 1.0f / 1024)
    worst = std::max(worst, ulps(exp_one(x), std::exp(static_cast<double>(x))));
  for (float x = -1.0f; x < 1.0f; x += 1.0f / 65536)
    worst = std::max(worst, ulps(exp_one(x), std::exp(static_cast<double>(x))));
  EXPECT_LE(worst, 2.0);
}

TEST(Math16, ExpAtItsEnds) {
  EXPECT_EQ(exp_one(0.0f), 1.0f);
  EXPECT_EQ(exp_one(-0.0f), 1.0f);
  EXPECT_EQ(exp_one(-200.0f), 0.0f);
  EXPECT_EQ(exp_one(-INFINITY), 0.0f);
  EXPECT_EQ(exp_one(89.0f), INFINITY);
  EXPECT_EQ(exp_one(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(exp_one(NAN)));
  EXPECT_GT(exp_one(-103.0f), 0.0f) << "subnormal results are not flushed";
  EXPECT_LT(exp_one(88.72f), INFINITY);
}

TEST(Math16, Log1pIsWithinThreeUlp) {
  double worst = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(1e-30f); bits < std::bit_cast<uint32_t>(1e9f);
       bits += 997) {
    const float x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(log1p_one(x), std::log1p(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 3.0);
  EXPECT_EQ(log1p_one(0.0f), 0.0f);
}

TEST(Math16, SigmoidEnds) {
  EXPECT_EQ(sigmoid_of(splat(0.0f)).v[0], 0.5f);
  EXPECT_EQ(sigmoid_of(splat(100.0f)).v[0], 1.0f);
  EXPECT_EQ(sigmoid_of(splat(-100.0f)).v[0], 0.0f);
}

}  // namespace
}  // namespace fathom::kernels::math16_test
