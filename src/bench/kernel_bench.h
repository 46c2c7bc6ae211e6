// Single kernels beside the ceiling that limits them, on random operands larger than any cache.
#pragma once

#include <vector>

#include "bench/ceilings.h"
#include "bench/figure.h"
#include "kernels/context.h"

namespace fathom::bench {

// One row of x times FP8, FP4 and bf16 weights: bytes of weights and scales read.
std::vector<Figure> bench_gemv(const kernels::Context& context, const Ceilings& ceilings);

// 256 rows of x: a multiplication and an addition a product.
std::vector<Figure> bench_gemm(const kernels::Context& context, const Ceilings& ceilings);

// 64 heads of 512 on 128 window rows and 512 selected ones. Bound: the longer of reading the rows
// and of the two products, scores at the bf16 rate and values, whose weights are f32, at that of
// f32.
std::vector<Figure> bench_attention(const kernels::Context& context, const Ceilings& ceilings);

}  // namespace fathom::bench
