#include "model/deepseek_v41/vision/shuffle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fathom::v41 {
namespace {

// 4 x 2 patches make 2 x 1 cells of 3 x 3; what lies outside is zero.
ResizePlan four_by_two() {
  ResizePlan plan;
  plan.patch_columns = 4;
  plan.patch_rows = 2;
  plan.token_columns = 2;
  plan.token_rows = 1;
  return plan;
}

TEST(Shuffle, ChannelMajorCellsPaddedWithZeros) {
  std::vector<float> patches;
  for (int patch = 0; patch < 8; ++patch) {
    patches.push_back(static_cast<float>(patch + 1));
    patches.push_back(static_cast<float>(100 * (patch + 1)));
  }
  std::vector<float> cells(2 * 18, -1.0F);
  shuffle_patches({patches.data(), 8, 2}, four_by_two(), 3, {cells.data(), 2, 18});
  const std::vector<float> want = {
      1, 2, 3, 5, 6, 7, 0, 0, 0, 100, 200, 300, 500, 600, 700, 0, 0, 0,  //
      4, 0, 0, 8, 0, 0, 0, 0, 0, 400, 0,   0,   800, 0,   0,   0, 0, 0};
  EXPECT_EQ(cells, want);
}

TEST(VisionRopeTable, RowAnglesThenColumnAnglesCosinesThenSines) {
  std::vector<float> table(8 * 8);
  make_vision_rope_table(four_by_two(), 10000.0, {table.data(), 8, 8});
  // Head size 8: frequencies 1 and 10000^(-1/2) = 0.01. Patch 6 is row 1, column 2.
  const float* row = &table[6 * 8];
  const double angles[] = {1.0, 0.01, 2.0, 0.02};
  for (int i = 0; i < 4; ++i) {
    // The f32 angle is within 2^-24 of it; one more rounding of the result.
    EXPECT_NEAR(row[i], std::cos(angles[i]), 3e-7) << i;
    EXPECT_NEAR(row[4 + i], std::sin(angles[i]), 3e-7) << i;
  }
}

}  // namespace
}  // namespace fathom::v41
