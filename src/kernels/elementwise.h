// Small ops over whole matrices: widening, adding, activations of the vision tower, the finite
// check.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

// y[t] = row token[t] of a bf16 table [V, D]; each token in [0, V). y [T, D].
void embed(MatrixView<const uint16_t> table, std::span<const TokenId> token, MatrixView<float> y);

// bf16 [rows, cols] to f32 and back (nearest even).
void widen_bf16(MatrixView<const uint16_t> x, MatrixView<float> y);
void narrow_bf16(MatrixView<const float> x, MatrixView<uint16_t> y);

// y = a + b; may be a or b. [T, C] each.
struct AddArgs {
  MatrixView<const float> a;
  MatrixView<const float> b;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void add(const Context& context, const AddArgs& args);

// y = silu(gate) · up with silu(gate) rounded too (§6.3); may be gate or up. [T, F] each.
// Against ref: rel 1e-6 before rounding.
struct SiluMulArgs {
  MatrixView<const float> gate;
  MatrixView<const float> up;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void silu_mul(const Context& context, const SiluMulArgs& args);

// y = x · (1 + erf(x / √2)) / 2; may be x. Against ref: rel 1e-6 before rounding.
struct GeluArgs {
  MatrixView<const float> x;
  MatrixView<float> y;
  bool round_bf16 = false;
};
void gelu_erf(const Context& context, const GeluArgs& args);

// False if any value is NaN or infinite. Reads x once; about memory speed.
bool all_finite(const Context& context, MatrixView<const float> x);

namespace ref {
void add(const AddArgs& args);
void silu_mul(const SiluMulArgs& args);
void gelu_erf(const GeluArgs& args);
bool all_finite(MatrixView<const float> x);
}  // namespace ref

}  // namespace fathom::kernels
