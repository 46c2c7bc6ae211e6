// The inner product of a tile in multiply-then-add arithmetic, for any ISA. `Lanes` is 16 floats
// (load, load_pairs_odd, load_pairs_even, store, +, *). Being a type of its ISA's namespace, it
// keeps the instantiations of different ISAs apart for the linker.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm_kernels.h"

namespace fathom::kernels::cpu {

template <typename Lanes>
struct SplitLoad {
  static Lanes odd(const float* step) { return Lanes::load(step); }
  static Lanes even(const float* step) { return Lanes::load(step + kDotLanes); }
};

template <typename Lanes>
struct PairsLoad {
  static Lanes odd(const uint16_t* step) { return Lanes::load_pairs_odd(step); }
  static Lanes even(const uint16_t* step) { return Lanes::load_pairs_even(step); }
};

template <typename Lanes, typename Load, typename T, int kRows, int kCols>
inline void multiply_tile(const TileArgs<T>& args, int64_t x_row, int64_t w_row) {
  Lanes lane[kRows][kCols];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kCols; ++c) lane[r][c] = Lanes::zero();
  const T* x = args.x + x_row * args.x_stride;
  const T* w = args.w + w_row * args.w_stride;
  for (int64_t s = 0; s < args.steps; ++s, x += kDotStep, w += kDotStep) {
    Lanes w_lanes[kCols];
    for (int c = 0; c < kCols; ++c) w_lanes[c] = Load::odd(w + c * args.w_stride);
    for (int r = 0; r < kRows; ++r) {
      const Lanes x_lanes = Load::odd(x + r * args.x_stride);
      for (int c = 0; c < kCols; ++c) lane[r][c] = lane[r][c] + x_lanes * w_lanes[c];
    }
    for (int c = 0; c < kCols; ++c) w_lanes[c] = Load::even(w + c * args.w_stride);
    for (int r = 0; r < kRows; ++r) {
      const Lanes x_lanes = Load::even(x + r * args.x_stride);
      for (int c = 0; c < kCols; ++c) lane[r][c] = lane[r][c] + x_lanes * w_lanes[c];
    }
  }
  float* total = args.total + (x_row * args.total_stride + w_row) * kDotLanes;
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kCols; ++c) {
      float* sum = total + (r * args.total_stride + c) * kDotLanes;
      (args.is_first ? lane[r][c] : Lanes::load(sum) + lane[r][c]).store(sum);
    }
  }
}

// The whole strip: full tiles of kRows × kCols, then the ragged rest one by one.
template <typename Lanes, typename Load, typename T, int kRows, int kCols>
inline void multiply_strip(const TileArgs<T>& args) {
  int64_t w_row = 0;
  for (; w_row + kCols <= args.w_rows; w_row += kCols) {
    int64_t x_row = 0;
    for (; x_row + kRows <= args.x_rows; x_row += kRows)
      multiply_tile<Lanes, Load, T, kRows, kCols>(args, x_row, w_row);
    for (; x_row < args.x_rows; ++x_row)
      multiply_tile<Lanes, Load, T, 1, kCols>(args, x_row, w_row);
  }
  for (; w_row < args.w_rows; ++w_row)
    for (int64_t x_row = 0; x_row < args.x_rows; ++x_row)
      multiply_tile<Lanes, Load, T, 1, 1>(args, x_row, w_row);
}

}  // namespace fathom::kernels::cpu
