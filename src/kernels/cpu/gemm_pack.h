// The steps of `linear` around its inner product: packing x, one block of weights.
// For gemm.cc.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm_kernels.h"
#include "kernels/linear.h"

namespace fathom::kernels::cpu {

// Rows of x in one of the two layouts of gemm_kernels.h; exactly one pointer is set.
struct PackedRows {
  const uint16_t* pairs = nullptr;
  const float* split = nullptr;
  int64_t stride = 0;
  MagnitudeRange range;  // of `pairs`
};

// Rows [first, first + count) of args.x, quantised if args say so. As pairs when every value is a
// bf16 and the weight is not f32, else split. Memory from `scratch`, the innermost one.
PackedRows pack_rows(const GemmKernels& kernels, const Context& context, Scratch& scratch,
                     const LinearArgs& args, int64_t first, int64_t count);

// Rows [row, row + rows), columns [col, col + cols) of a weight; col is a multiple of kDotBlock.
struct WeightBlock {
  const WeightView& weight;
  int64_t row;
  int64_t rows;
  int64_t col;
  int64_t cols;
};

// x rows that are widened at a time when a block needs f32 arithmetic.
constexpr int64_t kRowsPerWidening = 6;

struct BlockScratch {
  uint16_t* pairs;  // [rows of the block, kDotBlock]
  float* split;     // [rows of the block, kDotBlock]
  float* x_split;   // [kRowsPerWidening, kDotBlock]
  float* total;     // [x rows, rows of the block, 16]
};

// Adds the block's lane sums to total, or starts it when block.col is 0.
void multiply_block(const GemmKernels& kernels, const PackedRows& x, int64_t x_rows,
                    const WeightBlock& block, const BlockScratch& scratch);

// One packed row of x times some weight rows (`row` is a multiple of kGemvRows), all of K, if these
// kernels have a way of their own for it (an FP8 or FP4 weight whose products are exact); false:
// use multiply_block. total [rows, 16] is overwritten.
bool multiply_one_row(const GemmKernels& kernels, const PackedRows& x, const WeightView& weight,
                      int64_t row, int64_t rows, float* total);

int64_t weight_row_bytes(const WeightView& weight);

}  // namespace fathom::kernels::cpu
