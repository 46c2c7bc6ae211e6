// From a decoded picture to the numbers that enter the vision tower. Spec §6.2.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "io/picture/rgb_image.h"
#include "model/deepseek_v41/vision/resize_plan.h"

namespace fathom::v41 {

// The picture resized into plan's box: its shape kept and the rest filled with grey 127, unless
// max_wh_ratio is set and exceeded, which stretches it.
Result<RgbImage> fit_to_box(const RgbImage& image, const ResizePlan& plan,
                            const VisionConfig& vision, ThreadPool& pool);

// [patch_count, 3 · patch²], row-major over the grid, each patch (channel, y, x). Values in [−1,
// 1], bf16-representable whatever the policy.
std::vector<float> make_patches(const RgbImage& canvas, int64_t patch_size);

}  // namespace fathom::v41
