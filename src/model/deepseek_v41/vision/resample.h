// Bicubic resizing, byte for byte what Pillow (up to 12.3) does. Spec §6.2 item 3.
#pragma once

#include "base/thread_pool.h"
#include "io/picture/rgb_image.h"

namespace fathom::v41 {

// Antialiased bicubic, a = −0.5: a horizontal pass to 8 bit, then a vertical one; a pass that does
// not change the size is skipped. `width` and `height` >= 1. Splits rows over `pool`; holds one
// picture of width × image.height beside the result.
RgbImage resize_bicubic(const RgbImage& image, int64_t width, int64_t height, ThreadPool& pool);

}  // namespace fathom::v41
