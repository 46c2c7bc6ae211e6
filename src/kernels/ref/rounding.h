// What the plain kernels share: the optional rounding at an op's end. For kernels/ref only.
#pragma once

#include "tensor/codec.h"

namespace fathom::kernels::ref {

inline float round_if(bool round_bf16, double value) {
  const float f32 = static_cast<float>(value);
  return round_bf16 ? round_to_bf16(f32) : f32;
}

inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace fathom::kernels::ref
