// The steps and their order are the official processor's, in doubles like it.
#include "model/deepseek_v41/vision/resize_plan.h"

#include <algorithm>
#include <cmath>

namespace fathom::v41 {
namespace {

struct Size {
  double width = 0;
  double height = 0;
};

double round_up(double value, double unit) {
  return std::ceil(value / unit) * unit;
}
double round_down(double value, double unit) {
  return std::floor(value / unit) * unit;
}

// Small pictures grow to min_pixels, in whole pixels.
Size grow_to_min_pixels(Size size, double min_pixels) {
  const double pixels = size.width * size.height;
  if (pixels >= min_pixels) return size;
  const double factor = std::sqrt(min_pixels / pixels);
  return {std::trunc(size.width * factor), std::trunc(size.height * factor)};
}

// The largest box of the shape of `size` whose span fits; a picture too thin for even one row or
// column of tokens takes exactly one.
Size shrink_to_tokens(Size size, const VisionConfig& vision) {
  const auto patch = static_cast<double>(vision.patch_size);
  const double cell = patch * static_cast<double>(vision.downsample_ratio);
  const auto tokens_max = static_cast<double>(vision.max_image_tokens);
  const double shape = size.height / size.width;
  const double columns = std::sqrt((tokens_max - 2) / shape + 0.25) - 0.5;
  const double rows = columns * shape;
  if (columns < 1) return {cell, std::floor((tokens_max - 2) / 2) * cell};
  if (rows < 1) return {(tokens_max - 3) * cell, cell};
  const double factor =
      std::min(std::floor(columns) * cell / size.width, std::floor(rows) * cell / size.height);
  return {round_down(size.width * factor, patch), round_down(size.height * factor, patch)};
}

ResizePlan plan_of_box(Size box, const VisionConfig& vision) {
  const int64_t ratio = vision.downsample_ratio;
  ResizePlan plan;
  plan.box_width = static_cast<int64_t>(box.width);
  plan.box_height = static_cast<int64_t>(box.height);
  plan.patch_columns = plan.box_width / vision.patch_size;
  plan.patch_rows = plan.box_height / vision.patch_size;
  plan.token_columns = (plan.patch_columns + ratio - 1) / ratio;
  plan.token_rows = (plan.patch_rows + ratio - 1) / ratio;
  return plan;
}

}  // namespace

Result<ResizePlan> plan_resize(int64_t width, int64_t height, const VisionConfig& vision) {
  FATHOM_CHECK(width >= 1 && height >= 1, "picture of {}x{}", width, height);
  Size size{static_cast<double>(width), static_cast<double>(height)};
  if (vision.max_wh_ratio) size.width = std::min(size.width, size.height * *vision.max_wh_ratio);
  size = grow_to_min_pixels(size, static_cast<double>(vision.min_pixels));
  const auto patch = static_cast<double>(vision.patch_size);
  ResizePlan plan =
      plan_of_box({round_up(size.width, patch), round_up(size.height, patch)}, vision);
  if (plan.span_token_count() > vision.max_image_tokens) {
    plan = plan_of_box(shrink_to_tokens(size, vision), vision);
  }
  if (plan.span_token_count() > vision.max_image_tokens || plan.patch_count() < 1) {
    return error(Code::kInvalidArgument,
                 "a picture of {}x{} pixels does not fit into {} tokens; crop it to a less extreme "
                 "shape",
                 width, height, vision.max_image_tokens);
  }
  return plan;
}

}  // namespace fathom::v41
