// The order in which `linear` sums over K: one for every ISA, M, N and thread count, so that a row
// gives the same bits alone and in any batch, on any machine.
//
//   float total[16] = {};
//   for (b = 0; b < K; b += kDotBlock) {
//     float lane[16] = {};
//     for (s = b; s < min(b + kDotBlock, K); s += kDotStep)
//       for (i = 0; i < 16; ++i) {               // multiply, round, add, round: never a fused fma
//         lane[i] += x[s + 2i + 1] * w[s + 2i + 1];
//         lane[i] += x[s + 2i] * w[s + 2i];
//       }
//     for (i = 0; i < 16; ++i) total[i] += lane[i];
//   }
//   for (h = 8; h >= 1; h /= 2) for (i = 0; i < h; ++i) total[i] += total[i + h];
//   y = total[0]                                 // then + bias, then the rounding to bf16
//
// A K that is no multiple of 32 (FP4: of 128) is continued with zeros.
// With FP4 weights, x and w are first reordered inside each group of 128 by fp4_position: 4 shifts
// of the packed bytes then give the 4 steps of a group, and no byte has to be moved.
//
// Why this order: it is what VDPBF16PS does in one instruction (odd element first, then even), at
// twice the rate of f32 arithmetic. That instruction flushes subnormals, so it is used only where
// none can turn up (bf16_dot_is_exact). Blocks of 1024 keep the chains of roundings short.
#pragma once

#include <cstdint>

namespace fathom::kernels::cpu {

constexpr int64_t kDotLanes = 16;
constexpr int64_t kDotStep = 32;
constexpr int64_t kDotBlock = 1024;
constexpr int64_t kFp4Group = 128;

// Where column k of a group of 128 stands when the weights are FP4: k = 8i + 4u + t goes to
// element u of pair i of step t.
constexpr int64_t fp4_position(int64_t k) {
  return k % 4 * 32 + k / 8 * 2 + k / 4 % 2;
}

// The smallest and largest |v| > 0 of a set of bf16 values, as bf16 bits; empty: {0x7fff, 0}.
struct MagnitudeRange {
  uint16_t smallest = 0x7fff;
  uint16_t largest = 0;
};

// Whether VDPBF16PS equals multiply-then-add on operands of these ranges. A bf16 of exponent field
// e is a multiple of 2^(e - 134), so with e_x + e_w >= 142 every product and every sum of products
// is a multiple of 2^-126, hence 0 or normal; with E_x + E_w <= 379 no product overflows.
inline bool bf16_dot_is_exact(MagnitudeRange x, MagnitudeRange w) {
  const int smallest = (x.smallest >> 7) + (w.smallest >> 7);
  const int largest = (x.largest >> 7) + (w.largest >> 7);
  const bool none_subnormal = x.smallest >= 0x80 && w.smallest >= 0x80;
  return none_subnormal && smallest >= 142 && largest <= 379;
}

}  // namespace fathom::kernels::cpu
