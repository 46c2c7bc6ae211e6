// The scale of one block of a quantiser (§3.8), for ref and for the stored form of a row.
#pragma once

#include <span>

#include "kernels/quantise.h"

namespace fathom::kernels {

// A power of two for the ...Block32 kinds, an E4M3 value for kFp4Block16; never zero.
float block_scale(Quantiser quantiser, std::span<const float> block);

}  // namespace fathom::kernels
