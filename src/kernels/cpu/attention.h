// The text attention core on this CPU's vector units. Called by kernels/attention.cc, which has
// checked the shapes; context.isa is not kRef.
#pragma once

#include "kernels/attention.h"

namespace fathom::kernels::cpu {

void attention(const Context& context, const AttentionArgs& args);

}  // namespace fathom::kernels::cpu
