// What one ISA contributes to vision_attention: the three steps on a tile of queries and a block of
// keys. vision_attention.cc owns packing, blocking and threads. Built with ISA flags, so nothing
// but plain C++ is included.
//
// The one order of all sums, so that bits depend on neither tile, threads nor ISA:
//   score[j]  lane of its own; over d in pairs, the odd one first: += q[2i+1]·k[2i+1], +=
//   q[2i]·k[2i] p[j]      2^((score[j] − best) · scale_log2), 0 below 2^-40; best is that of all
//   keys up to the
//             block's end
//   total     · 2^((old best − best) · scale_log2), + 16 lane sums of unrounded p, added by halves
//   y[d]      · the same factor, + the block's sum over j in pairs, odd first
// Multiply, round, add, round throughout. VDPBF16PS does the two pair steps in one instruction; it
// may where bf16_dot_is_exact says that it gives the same bits.
#pragma once

#include <cstdint>

namespace fathom::kernels::cpu {

// Keys that share one running maximum; part of the order. With a tile of 48 queries the scores take
// 48 KiB and the block's keys and values, as pairs of 64 dims, 64 KiB of L2.
constexpr int64_t kVisionKeyBlock = 256;
constexpr int64_t kVisionLanes = 16;

// Packed operands, `T` = uint16_t (bf16 bits) or float. D is head_dim padded with zeros to a
// multiple of 16, keys are padded with zeros to a multiple of 16.
//   q       [rows, D]
//   keys    per 16 keys: bf16 [D/2][16 keys][2], float [D][16 keys]
//   values  bf16: per 2 keys [D][2]; float [keys, D]
//   p       [rows, kVisionKeyBlock]
template <typename T>
struct VisionBlock {
  const T* q = nullptr;
  const T* keys = nullptr;    // of this block
  const T* values = nullptr;  // of this block
  T* p = nullptr;
  float* score = nullptr;  // [rows, kVisionKeyBlock]
  float* best = nullptr;   // [rows] largest score so far
  float* total = nullptr;  // [rows] sum of p so far
  float* decay = nullptr;  // [rows] factor for what came before this block
  float* y = nullptr;      // [rows, D]
  int64_t rows = 0;
  int64_t dims = 0;       // D
  int64_t key_count = 0;  // of this block, in [1, kVisionKeyBlock]
  float scale_log2 = 1;   // scale · log2 e
  bool round_probabilities = false;
};

// The steps, in this order for each block. `weigh` turns score into p and updates best, total,
// decay.
template <typename T>
struct VisionKernels {
  void (*score)(const VisionBlock<T>& block) = nullptr;
  void (*weigh)(const VisionBlock<T>& block) = nullptr;
  void (*add_values)(const VisionBlock<T>& block) = nullptr;
};

}  // namespace fathom::kernels::cpu
