// Rotary position embedding: frequencies, angles and the two pairings. Spec §3.3 (text), §6.3
// (vision).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

inline constexpr int64_t kRotaryMax = 1024;  // R; bounds a row's copy of its table, on the stack

struct Yarn {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  int64_t original_positions = 0;
};

// f_i for i in [0, rotary_dims / 2), every step rounded to f32 in the order of §3.3. Made once a
// load.
std::vector<float> rope_frequencies(int64_t rotary_dims, double theta,
                                    const std::optional<Yarn>& yarn);

// Row t of `table` = cos(θ_0) … cos(θ_R/2-1), sin(θ_0) … sin(θ_R/2-1) with the f32 angle
// θ_i = f32(position[t]) · f_i; cos and sin are those of exactly that f32 value, rounded to f32.
//   table  [T, R]  f32  out
// Vision: the caller makes row and column tables and joins them (cos|sin halves stay separate).
void rope_table(std::span<const int64_t> positions, std::span<const float> frequencies,
                MatrixView<float> table);

enum class RopePairs {
  kAdjacent,   // (x[2i], x[2i+1]) of the last R channels of a head: text
  kHalfSplit,  // (x[i], x[R/2+i]) of the last R channels of a head: vision, where R = Hd
};

//   x      [T, heads·Hd]  f32  in/out, rows may have any stride
//   table  [T, R]         f32  R even, R <= Hd
// (a, b) becomes (a·cos - b·sin, a·sin + b·cos); `inverse` negates sin. Only rotated channels are
// rounded. Against ref: equal.
struct RopeArgs {
  MatrixView<float> x;
  int64_t head_dim = 0;
  MatrixView<const float> table;
  RopePairs pairs = RopePairs::kAdjacent;
  bool inverse = false;
  bool round_bf16 = false;
};
void rope(const Context& context, const RopeArgs& args);

namespace ref {
void rope(const RopeArgs& args);
}

}  // namespace fathom::kernels
