// Steps of vision_attention that need VDPBF16PS; call only where the CPU has it.
#pragma once

#include "kernels/cpu/vision_kernels.h"

namespace fathom::kernels::avx512_bf16 {

void vision_score(const cpu::VisionBlock<uint16_t>& block);
void vision_add_values(const cpu::VisionBlock<uint16_t>& block);

}  // namespace fathom::kernels::avx512_bf16
