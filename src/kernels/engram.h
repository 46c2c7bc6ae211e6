// Engram: decoding of table rows, gate and injection. Spec §5.4, §5.5.
// Which rows a token has is integer work of the model (§5.3), not of a kernel.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

// y[c] = e4m3(codes[c]) · 2^(scales[c div 32] - 127), exact. codes [n, C], scales [n, C/32], y [n,
// C].
void decode_fp8_rows(MatrixView<const uint8_t> codes, MatrixView<const uint8_t> scales,
                     MatrixView<float> y);

//   x         [T, S·D]      f32  in/out  the residual streams
//   kv        [T, (S+1)·D]  f32          S keys, then the value
//   q_weight  [S·D], k_weight [S·D] f32
//   is_dead   [T]           u8           empty: none. Gate 0
//   gate      [T, S]        f32  out     for the observer
// Sums in double, elementwise f32. Against ref: gates rel 1e-6, x within one rounding of it.
struct EngramInjectArgs {
  MatrixView<float> x;
  MatrixView<const float> kv;
  std::span<const float> q_weight;
  std::span<const float> k_weight;
  std::span<const uint8_t> is_dead = {};
  float norm_eps = 1e-20f;
  MatrixView<float> gate;
  bool round_bf16 = false;
};
void engram_inject(const Context& context, const EngramInjectArgs& args);

// The two halves of it, for a caller that taps or replaces the gate in between: what is left of a
// sum that cancels shows the last place of the gate.
void engram_gate(const Context& context, const EngramInjectArgs& args);  // writes gate only
void engram_add_value(const Context& context,
                      const EngramInjectArgs& args);  // reads gate, writes x

namespace ref {
void engram_gate(const EngramInjectArgs& args);
void engram_add_value(const EngramInjectArgs& args);
}  // namespace ref

}  // namespace fathom::kernels
