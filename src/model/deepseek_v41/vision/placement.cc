#include "model/deepseek_v41/vision/placement.h"

#include <algorithm>

namespace fathom::v41 {

std::vector<SpanKind> span_kinds(const ResizePlan& plan) {
  std::vector<SpanKind> kinds = {SpanKind::kStart};
  for (int64_t row = 0; row < plan.token_rows; ++row) {
    kinds.insert(kinds.end(), static_cast<size_t>(plan.token_columns), SpanKind::kImage);
    kinds.push_back(SpanKind::kNewline);
  }
  kinds.push_back(SpanKind::kEnd);
  return kinds;
}

std::vector<float> place_features(std::span<const SpanKind> kinds, MatrixView<const float> features,
                                  const VisionWeights& weights) {
  const auto images = std::count(kinds.begin(), kinds.end(), SpanKind::kImage);
  FATHOM_CHECK(images == features.rows, "{} places for {} features", images, features.rows);
  std::vector<float> rows;
  rows.reserve(kinds.size() * static_cast<size_t>(features.cols));
  int64_t next = 0;
  for (const SpanKind kind : kinds) {
    const Vector row = kind == SpanKind::kImage     ? features.row(next++)
                       : kind == SpanKind::kStart   ? weights.image_start
                       : kind == SpanKind::kNewline ? weights.image_newline
                                                    : weights.image_end;
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace fathom::v41
