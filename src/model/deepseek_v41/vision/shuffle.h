// Two tables of where each patch is: its rotary angles, and its place in the aligner's cells.
#pragma once

#include "model/deepseek_v41/vision/resize_plan.h"
#include "tensor/view.h"

namespace fathom::v41 {

//   table  [patch_count, Hd]  out  cos of Hd/4 row angles, of Hd/4 column angles, then their sines
// Spec §6.3; Hd is a multiple of 4.
void make_vision_rope_table(const ResizePlan& plan, double theta, MatrixView<float> table);

//   patches  [patch_count, C]             in grid order
//   cells    [image_token_count, C·ρ²]  out  index c·ρ² + ky·ρ + kx; patches beyond the grid are 0
// Spec §6.4.
void shuffle_patches(MatrixView<const float> patches, const ResizePlan& plan, int64_t ratio,
                     MatrixView<float> cells);

}  // namespace fathom::v41
