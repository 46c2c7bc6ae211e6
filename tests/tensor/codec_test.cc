#include "tensor/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace fathom {
namespace {

TEST(Bf16, RoundsToNearestEvenAndKeepsEveryBf16) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(round_to_bf16(value))) << bits;
    } else {
      EXPECT_EQ(f32_to_bf16(value), bits);
    }
  }
  EXPECT_EQ(f32_to_bf16(0x1.01p0f), 0x3f80) << "a tie goes to the even neighbour below";
  EXPECT_EQ(f32_to_bf16(0x1.03p0f), 0x3f82) << "and above";
  EXPECT_EQ(f32_to_bf16(0x1.010002p0f), 0x3f81) << "past the tie";
  EXPECT_EQ(f32_to_bf16(3.4e38f), 0x7f80) << "overflow is infinity";
  EXPECT_EQ(f32_to_bf16(-0.0f), 0x8000);
}

// Nearest of the grid by search, ties to the even code: what the codecs must agree with.
template <typename Decode>
uint8_t nearest_code(float value, int code_count, uint8_t sign_bit, Decode decode) {
  const double magnitude = std::fabs(value);
  int best = 0;
  for (int code = 1; code < code_count; ++code) {
    const double nearer = std::fabs(decode(static_cast<uint8_t>(code)) - magnitude);
    const double best_distance = std::fabs(decode(static_cast<uint8_t>(best)) - magnitude);
    if (nearer < best_distance || (nearer == best_distance && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best | (std::signbit(value) ? sign_bit : 0));
}

// Every grid value, every middle of two, and the floats next to them, both signs.
std::vector<float> interesting(std::vector<float> grid) {
  std::vector<float> values;
  for (size_t i = 0; i + 1 < grid.size(); ++i) {
    for (float value : {grid[i], (grid[i] + grid[i + 1]) / 2, grid[i + 1] * 1.001f}) {
      values.insert(values.end(),
                    {value, std::nextafterf(value, 0.0f), std::nextafterf(value, 1e30f)});
    }
  }
  values.insert(values.end(), {1e4f, 1e-30f, 0.0f});
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

TEST(E4m3, DecodesTheKnownCodes) {
  EXPECT_EQ(e4m3_to_f32(0x00), 0.0f);
  EXPECT_TRUE(std::signbit(e4m3_to_f32(0x80)));
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9f);
  EXPECT_EQ(e4m3_to_f32(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(e4m3_to_f32(0x08), 0x1p-6f);
  EXPECT_EQ(e4m3_to_f32(0x38), 1.0f);
  EXPECT_EQ(e4m3_to_f32(0x7e), 448.0f);
  EXPECT_EQ(e4m3_to_f32(0xfe), -448.0f);
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7f)));
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0xff)));
}

TEST(E4m3, EncodesToTheNearestCode) {
  std::vector<float> grid;
  for (int code = 0; code < 0x7f; ++code) grid.push_back(e4m3_to_f32(static_cast<uint8_t>(code)));
  EXPECT_TRUE(std::is_sorted(grid.begin(), grid.end()));
  for (int code = 0; code < 256; ++code) {
    if (code % 128 == 127) continue;
    EXPECT_EQ(f32_to_e4m3(e4m3_to_f32(static_cast<uint8_t>(code))), code);
  }
  for (float value : interesting(grid))
    EXPECT_EQ(f32_to_e4m3(value), nearest_code(value, 0x7f, 0x80, e4m3_to_f32)) << value;
  EXPECT_EQ(f32_to_e4m3(NAN), 0x7f);
}

TEST(E2m1, EncodesToTheNearestCode) {
  for (uint8_t code = 0; code < 16; ++code) EXPECT_EQ(f32_to_e2m1(e2m1_to_f32(code)), code);
  const std::vector<float> grid(kE2m1Values, kE2m1Values + 8);
  for (float value : interesting(grid))
    EXPECT_EQ(f32_to_e2m1(value), nearest_code(value, 8, 8, e2m1_to_f32)) << value;
  // The ties that the specification lists (§3.8).
  const std::pair<float, float> ties[] = {{0.25f, 0}, {0.75f, 1}, {1.25f, 1}, {1.75f, 2},
                                          {2.5f, 2},  {3.5f, 4},  {5.0f, 4}};
  for (auto [value, rounded] : ties) EXPECT_EQ(e2m1_to_f32(f32_to_e2m1(value)), rounded) << value;
}

TEST(E8m0, CodesArePowersOfTwo) {
  for (int byte = 0; byte < 255; ++byte) {
    const float value = e8m0_to_f32(static_cast<uint8_t>(byte));
    EXPECT_EQ(value, std::ldexp(1.0f, byte - 127)) << byte;
    EXPECT_EQ(f32_to_e8m0(value), byte);
  }
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

TEST(PowerOfTwoCeil, IsTheNextPowerOrTheNumberItself) {
  EXPECT_EQ(power_of_two_ceil(1.0f), 1.0f);
  EXPECT_EQ(power_of_two_ceil(std::nextafterf(1.0f, 2.0f)), 2.0f);
  EXPECT_EQ(power_of_two_ceil(0.75f), 1.0f);
  EXPECT_EQ(power_of_two_ceil(0x1p-126f), 0x1p-126f);
}

}  // namespace
}  // namespace fathom
