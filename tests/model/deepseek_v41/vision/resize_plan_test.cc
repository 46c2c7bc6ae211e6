#include "model/deepseek_v41/vision/resize_plan.h"

#include <gtest/gtest.h>

namespace fathom::v41 {
namespace {

struct Row {
  int64_t width, height;              // original
  int64_t box_width, box_height;      // pixels
  int64_t patch_columns, patch_rows;  //
  int64_t token_rows, token_columns;  //
  int64_t image_tokens, span_tokens;  //
};

// The table of spec §6.1, and 1x4096 and 100x100 of the prompt encoding's §9.3.
TEST(ResizePlan, TableOfTheSpecification) {
  const Row table[] = {
      {1554, 1078, 1554, 1078, 111, 77, 26, 37, 962, 990},
      {1344, 1344, 1302, 1302, 93, 93, 31, 31, 961, 994},
      {1920, 1080, 1708, 966, 122, 69, 23, 41, 943, 968},
      {3840, 2160, 1708, 966, 122, 69, 23, 41, 943, 968},
      {4000, 3000, 1512, 1134, 108, 81, 27, 36, 972, 1001},
      {1000, 1000, 1008, 1008, 72, 72, 24, 24, 576, 602},
      {640, 480, 644, 490, 46, 35, 12, 16, 192, 206},
      {224, 224, 546, 546, 39, 39, 13, 13, 169, 184},
      {544, 544, 546, 546, 39, 39, 13, 13, 169, 184},
      {1, 1, 546, 546, 39, 39, 13, 13, 169, 184},
      {2000, 100, 2436, 126, 174, 9, 3, 58, 174, 179},
      {1, 4096, 42, 21462, 3, 1533, 511, 1, 511, 1024},
      {100, 100, 546, 546, 39, 39, 13, 13, 169, 184},
  };
  for (const Row& row : table) {
    const auto plan = plan_resize(row.width, row.height, VisionConfig{});
    ASSERT_TRUE(plan.is_ok()) << row.width << "x" << row.height;
    EXPECT_EQ(plan->box_width, row.box_width) << row.width << "x" << row.height;
    EXPECT_EQ(plan->box_height, row.box_height) << row.width << "x" << row.height;
    EXPECT_EQ(plan->patch_columns, row.patch_columns) << row.width << "x" << row.height;
    EXPECT_EQ(plan->patch_rows, row.patch_rows) << row.width << "x" << row.height;
    EXPECT_EQ(plan->token_rows, row.token_rows) << row.width << "x" << row.height;
    EXPECT_EQ(plan->token_columns, row.token_columns) << row.width << "x" << row.height;
    EXPECT_EQ(plan->image_token_count(), row.image_tokens) << row.width << "x" << row.height;
    EXPECT_EQ(plan->span_token_count(), row.span_tokens) << row.width << "x" << row.height;
  }
}

TEST(ResizePlan, EveryPlanFitsOrIsRefused) {
  for (int64_t width = 1; width <= 16384; width = width * 5 / 3 + 1) {
    for (int64_t height = 1; height <= 16384; height = height * 5 / 3 + 1) {
      const auto plan = plan_resize(width, height, VisionConfig{});
      if (!plan.is_ok()) {
        EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
        continue;
      }
      EXPECT_LE(plan->span_token_count(), 1024) << width << "x" << height;
      EXPECT_GE(plan->patch_count(), 1) << width << "x" << height;
      EXPECT_LE(plan->patch_count(), 9189) << width << "x" << height;
      EXPECT_EQ(plan->box_width, plan->patch_columns * 14);
    }
  }
}

TEST(ResizePlan, WideRatioIsCappedBeforePlanning) {
  VisionConfig vision;
  vision.max_wh_ratio = 4.0;
  const auto wide = plan_resize(4000, 500, vision);
  const auto capped = plan_resize(2000, 500, vision);
  ASSERT_TRUE(wide.is_ok() && capped.is_ok());
  EXPECT_EQ(wide->box_width, capped->box_width);
  EXPECT_EQ(wide->box_height, capped->box_height);
}

TEST(ResizePlan, RefusalNamesSizeAndTokens) {
  VisionConfig vision;
  vision.max_image_tokens = 3;  // start, newline and end leave no place for a picture
  const auto plan = plan_resize(3000, 2000, vision);
  ASSERT_FALSE(plan.is_ok());
  EXPECT_NE(plan.status().message().find("3000x2000"), std::string::npos);
}

}  // namespace
}  // namespace fathom::v41
