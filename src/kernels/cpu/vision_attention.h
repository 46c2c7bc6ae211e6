// vision_attention on this CPU's vector units. Called by kernels/vision_attention.cc, which has
// checked the shapes.
#pragma once

#include "kernels/vision_attention.h"

namespace fathom::kernels::cpu {

// context.isa picks the kernels; kRef is not one of them.
void vision_attention(const Context& context, const VisionAttentionArgs& args);

}  // namespace fathom::kernels::cpu
