// The steps of vision_attention on every ISA, in multiply-then-add arithmetic. Orders and layouts:
// cpu/vision_kernels.h.
#pragma once

#include "kernels/cpu/per_isa.h"
#include "kernels/cpu/vision_kernels.h"

FATHOM_PER_ISA(void vision_score(const cpu::VisionBlock<float>& block);
               void vision_weigh(const cpu::VisionBlock<float>& block);
               void vision_weigh_pairs(const cpu::VisionBlock<uint16_t>& block);
               void vision_add_values(const cpu::VisionBlock<float>& block))
