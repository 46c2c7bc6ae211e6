#include "kernels/elementwise.h"

#include <cmath>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {

void add(const AddArgs& args) {
  for (int64_t t = 0; t < args.a.rows; ++t)
    for (int64_t c = 0; c < args.a.cols; ++c)
      args.y.row(t)[c] = round_if(args.round_bf16, args.a.row(t)[c] + args.b.row(t)[c]);
}

void silu_mul(const SiluMulArgs& args) {
  for (int64_t t = 0; t < args.gate.rows; ++t) {
    for (int64_t f = 0; f < args.gate.cols; ++f) {
      const float gate = args.gate.row(t)[f];
      const float silu = round_if(args.round_bf16, gate * sigmoid(gate));
      args.y.row(t)[f] = round_if(args.round_bf16, silu * args.up.row(t)[f]);
    }
  }
}

void gelu_erf(const GeluArgs& args) {
  for (int64_t t = 0; t < args.x.rows; ++t) {
    for (int64_t c = 0; c < args.x.cols; ++c) {
      const double x = args.x.row(t)[c];
      args.y.row(t)[c] = round_if(args.round_bf16, 0.5 * x * std::erfc(-x / std::sqrt(2.0)));
    }
  }
}

bool all_finite(MatrixView<const float> x) {
  for (int64_t t = 0; t < x.rows; ++t)
    for (float value : x.row(t))
      if (!std::isfinite(value)) return false;
  return true;
}

}  // namespace fathom::kernels::ref
