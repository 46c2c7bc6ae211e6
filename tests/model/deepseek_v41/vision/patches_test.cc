#include "model/deepseek_v41/vision/patches.h"

#include <gtest/gtest.h>

namespace fathom::v41 {
namespace {

ResizePlan box(int64_t width, int64_t height) {
  ResizePlan plan;
  plan.box_width = width;
  plan.box_height = height;
  return plan;
}

RgbImage plain(int64_t width, int64_t height, uint8_t value) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3), value)};
}

TEST(FitToBox, KeepsShapeAndCentresOnGrey) {
  ThreadPool pool(1);
  // 10x5 into 28x28: 28x14, rows 7 to 20.
  const auto canvas = fit_to_box(plain(10, 5, 200), box(28, 28), VisionConfig{}, pool);
  ASSERT_TRUE(canvas.is_ok());
  const auto pixel = [&](int64_t y) { return canvas->pixels[static_cast<size_t>(y * 28 * 3)]; };
  EXPECT_EQ(pixel(6), 127);
  EXPECT_EQ(pixel(7), 200);
  EXPECT_EQ(pixel(20), 200);
  EXPECT_EQ(pixel(21), 127);
}

TEST(FitToBox, HalvesRoundToEven) {
  ThreadPool pool(1);
  // 56x9 into 28x14: height 4.5 becomes 4, offset 5. 56x11: 5.5 becomes 6, offset 4.
  for (const auto& [height, first, last] : {std::tuple{9, 5, 8}, std::tuple{11, 4, 9}}) {
    const auto canvas = fit_to_box(plain(56, height, 9), box(28, 14), VisionConfig{}, pool);
    ASSERT_TRUE(canvas.is_ok());
    for (int y = 0; y < 14; ++y) {
      const bool is_picture = y >= first && y <= last;
      EXPECT_EQ(canvas->pixels[static_cast<size_t>(y * 28 * 3)], is_picture ? 9 : 127) << y;
    }
  }
}

TEST(FitToBox, StretchesWhatIsWiderThanTheRatio) {
  ThreadPool pool(1);
  VisionConfig vision;
  vision.max_wh_ratio = 2.0;
  const auto canvas = fit_to_box(plain(60, 10, 9), box(28, 14), vision, pool);
  ASSERT_TRUE(canvas.is_ok());
  EXPECT_EQ(canvas->pixels, plain(28, 14, 9).pixels);
}

TEST(FitToBox, RefusesWhatVanishes) {
  ThreadPool pool(1);
  const auto canvas = fit_to_box(plain(10000, 1, 9), box(28, 14), VisionConfig{}, pool);
  ASSERT_FALSE(canvas.is_ok());
  EXPECT_NE(canvas.status().message().find("10000x1"), std::string::npos);
}

TEST(MakePatches, ChannelThenRowThenColumnAndExactValues) {
  RgbImage canvas = plain(4, 2, 255);
  canvas.pixels[0] = 0;                     // (0, 0) red, patch 0
  canvas.pixels[(1 * 4 + 3) * 3 + 2] = 51;  // (3, 1) blue, patch 1
  const std::vector<float> patches = make_patches(canvas, 2);
  ASSERT_EQ(patches.size(), 24U);
  EXPECT_EQ(patches[0], -1.0F);
  EXPECT_EQ(patches[1], 1.0F);
  // 51/255 = 0.2; (0.2 - 0.5) / 0.5 = -0.6, in bf16 -0.6015625.
  EXPECT_EQ(patches[12 + 2 * 4 + 3], -0.6015625F);
}

}  // namespace
}  // namespace fathom::v41
