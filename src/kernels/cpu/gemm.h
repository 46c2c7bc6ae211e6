// `linear` on this CPU's vector units. Called by kernels/linear.cc, which has checked the shapes.
#pragma once

#include <span>

#include "kernels/cpu/gemm_kernels.h"
#include "kernels/linear.h"

namespace fathom::kernels::cpu {

// context.isa picks the kernels; kRef is not one of them.
void linear(const Context& context, const LinearArgs& args);
void linear_together(const Context& context, std::span<const LinearArgs> all);

// The kernels of an ISA: with kAvx512 those that use VDPBF16PS where the CPU has it and a probe
// finds that it computes what dot_order.h says.
const GemmKernels& gemm_kernels(Isa isa);

// `linear` with given kernels, for the test that compares them all.
void linear_with(const GemmKernels& kernels, const Context& context, const LinearArgs& args);

}  // namespace fathom::kernels::cpu
