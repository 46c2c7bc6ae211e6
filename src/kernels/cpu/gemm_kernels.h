// What one ISA contributes to `linear`: packing, decoding and the inner product of a small tile.
// gemm.cc owns blocking and threads. Built with ISA flags, so nothing but plain C++ is included.
//
// Two layouts of a row, both in the order of dot_order.h and padded with zeros to a full step (FP4:
// a full group):
//   pairs  uint16_t[K]  bf16 bits
//   split  float[K]     per step of 32 the 16 odd values, then the 16 even ones
#pragma once

#include <cstdint>

#include "kernels/cpu/dot_order.h"

namespace fathom::kernels::cpu {

// A strip of rows times a strip of weight rows over one block of K.
template <typename T>
struct TileArgs {
  const T* x = nullptr;  // [x_rows, steps * 32]
  int64_t x_stride = 0;
  int64_t x_rows = 0;
  const T* w = nullptr;  // [w_rows, steps * 32]
  int64_t w_stride = 0;
  int64_t w_rows = 0;
  int64_t steps = 0;
  float* total = nullptr;  // lane sums: 16 floats at total + (x_row * total_stride + w_row) * 16
  int64_t total_stride = 0;
  bool is_first = false;  // store instead of add: total is not initialised yet
};

// A piece of one weight row, `count` values from `codes`; starts at a multiple of kDotBlock.
struct DecodeArgs {
  const void* codes = nullptr;
  const uint8_t* scales = nullptr;  // one E8M0 byte per 32 values; null for bf16
  int64_t count = 0;
  uint16_t* out = nullptr;         // pairs
  const void* prefetch = nullptr;  // what will be decoded soon, of the same length; may be null
};

// One row of x times a few weight rows over all of K, decoded on the way.
struct GemvArgs {
  const uint16_t* x = nullptr;  // pairs
  const uint8_t* codes = nullptr;
  int64_t codes_stride = 0;  // bytes
  const uint8_t* scales = nullptr;
  int64_t scales_stride = 0;  // FP4: bytes from row to row; FP8: all rows share the scales
  int64_t rows = 0;           // at most kGemvRows
  int64_t cols = 0;
  float* total = nullptr;  // [rows, 16]
};
constexpr int64_t kGemvRows = 4;

// The end of some outputs of one x row: y[i] = the lanes at total + 16 i summed by halves, plus
// bias[i], rounded to bf16 if wished.
struct FinishArgs {
  const float* total = nullptr;  // [count, 16]
  const float* bias = nullptr;   // [count] or null
  int64_t count = 0;
  bool round_bf16 = false;
  float* y = nullptr;
};

struct GemmKernels {
  // x[0, count) to pairs. False when a value is no bf16 (the pairs are then useless).
  bool (*pack_pairs)(const float* x, int64_t count, uint16_t* out, MagnitudeRange& range);
  void (*pack_split)(const float* x, int64_t count, float* out);
  void (*pack_split_fp4)(const float* x, int64_t count, float* out);
  // Natural order to the order for FP4 weights, in place; `count` a multiple of kFp4Group.
  void (*reorder_fp4)(uint16_t* pairs, int64_t count);
  void (*split_from_pairs)(const uint16_t* pairs, int64_t count, float* out);

  void (*decode_bf16)(const DecodeArgs& args, MagnitudeRange& range);
  // Scale bytes in [kScaleMin, kScaleMax] only: then every value is a normal bf16.
  void (*decode_fp8)(const DecodeArgs& args);
  void (*decode_fp4)(const DecodeArgs& args);

  void (*tile_pairs)(const TileArgs<uint16_t>& args);
  void (*tile_split)(const TileArgs<float>& args);
  // By VDPBF16PS; null without it. Caller asks bf16_dot_is_exact first.
  void (*tile_pairs_dot)(const TileArgs<uint16_t>& args);
  void (*gemv_fp8_dot)(const GemvArgs& args);
  void (*gemv_fp4_dot)(const GemvArgs& args);

  void (*finish)(const FinishArgs& args);
};

// 2^-9 (the smallest E4M3) times the scale is normal; 480 times the scale is finite.
constexpr int kScaleMin = 10;
constexpr int kScaleMax = 246;

const GemmKernels& gemm_kernels_portable();
const GemmKernels& gemm_kernels_avx2();
const GemmKernels& gemm_kernels_avx512();
const GemmKernels& gemm_kernels_avx512_bf16();

}  // namespace fathom::kernels::cpu
