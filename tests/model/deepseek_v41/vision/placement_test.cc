#include "model/deepseek_v41/vision/placement.h"

#include <gtest/gtest.h>

namespace fathom::v41 {
namespace {

ResizePlan grid(int64_t rows, int64_t columns) {
  ResizePlan plan;
  plan.token_rows = rows;
  plan.token_columns = columns;
  return plan;
}

TEST(Placement, SpanIsStartRowsWithNewlinesEnd) {
  const std::vector<SpanKind> kinds = span_kinds(grid(2, 3));
  const std::vector<int> want = {0, 1, 1, 1, 2, 1, 1, 1, 2, 3};
  ASSERT_EQ(kinds.size(), want.size());
  EXPECT_EQ(static_cast<int64_t>(kinds.size()), grid(2, 3).span_token_count());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(static_cast<int>(kinds[i]), want[i]) << i;
}

TEST(Placement, FeaturesFillTheImagePlacesInReadingOrder) {
  const std::vector<float> start = {10, 11};
  const std::vector<float> newline = {20, 21};
  const std::vector<float> end = {30, 31};
  VisionWeights weights;
  weights.image_start = start;
  weights.image_newline = newline;
  weights.image_end = end;
  const std::vector<float> features = {1, 2, 3, 4};
  const std::vector<float> rows = place_features(
      span_kinds(grid(2, 1)), MatrixView<const float>(features.data(), 2, 2), weights);
  EXPECT_EQ(rows, (std::vector<float>{10, 11, 1, 2, 20, 21, 3, 4, 20, 21, 30, 31}));
}

}  // namespace
}  // namespace fathom::v41
