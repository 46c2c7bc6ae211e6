// How a picture of any size becomes a grid of patches and a span of tokens. Spec §6.1. Pure
// numbers.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/deepseek_v41/config.h"

namespace fathom::v41 {

// The box is the canvas in pixels, a whole number of patches; a token stands for ratio × ratio
// patches, those at the right and bottom edge padded.
struct ResizePlan {
  int64_t box_width = 0;
  int64_t box_height = 0;
  int64_t patch_columns = 0;
  int64_t patch_rows = 0;
  int64_t token_columns = 0;
  int64_t token_rows = 0;

  int64_t patch_count() const { return patch_columns * patch_rows; }
  int64_t image_token_count() const { return token_columns * token_rows; }
  // With the start, one newline a row, and the end.
  int64_t span_token_count() const { return token_rows * (token_columns + 1) + 2; }
};

// `width` and `height` of the decoded picture, each >= 1. kInvalidArgument when no shrinking makes
// it fit into max_image_tokens.
Result<ResizePlan> plan_resize(int64_t width, int64_t height, const VisionConfig& vision);

}  // namespace fathom::v41
