// Mixture of experts of one layer (spec §4).
#pragma once

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// out [n, D] = routed experts + shared expert of x [n, D]. Pins the routed experts only.
Status mix_experts(const Pass& pass, int32_t layer, MatrixView<const float> x, const Step& step,
                   MatrixView<float> out);

}  // namespace fathom::v41
