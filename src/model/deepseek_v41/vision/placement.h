// Which row of a picture's span is what, and the rows themselves. Spec §6.4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/deepseek_v41/vision/resize_plan.h"
#include "model/deepseek_v41/weights.h"

namespace fathom::v41 {

// Numbers as in the golden files.
enum class SpanKind : int32_t { kStart = 0, kImage = 1, kNewline = 2, kEnd = 3 };

// Start; token_rows times (token_columns images, newline); end.
std::vector<SpanKind> span_kinds(const ResizePlan& plan);

// One row of D floats a kind: the learned vectors, and for kImage the rows of `features` [images,
// D] in reading order.
std::vector<float> place_features(std::span<const SpanKind> kinds, MatrixView<const float> features,
                                  const VisionWeights& weights);

}  // namespace fathom::v41
