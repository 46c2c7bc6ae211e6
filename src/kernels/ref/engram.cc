#include "kernels/engram.h"

#include <algorithm>
#include <cmath>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {
namespace {

float inverse_rms(double sum_sq, double width, float eps) {
  const float variance = static_cast<float>(sum_sq / width) + eps;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance)));
}

// Double sums, then the model's own f32 steps: x + gate · value may cancel, and what is left shows
// the last place of the gate.
float gate_of(const EngramInjectArgs& args, std::span<const float> x, std::span<const float> key,
              int64_t first) {
  double dot = 0;
  double x_sq = 0;
  double key_sq = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    const float weight = args.q_weight[first + d] * args.k_weight[first + d];
    dot += static_cast<double>(x[d]) * weight * key[d];
    x_sq += static_cast<double>(x[d]) * x[d];
    key_sq += static_cast<double>(key[d]) * key[d];
  }
  const double width = static_cast<double>(x.size());
  const float norm =
      inverse_rms(x_sq, width, args.norm_eps) * inverse_rms(key_sq, width, args.norm_eps);
  const float similarity =
      static_cast<float>(dot) * norm * static_cast<float>(1.0 / std::sqrt(width));
  const float root = std::sqrt(std::max(std::fabs(similarity), 1e-6f));
  return static_cast<float>(sigmoid(std::copysign(root, similarity)));
}

}  // namespace

void engram_gate(const EngramInjectArgs& args) {
  const int64_t streams = args.gate.cols;
  const int64_t width = args.x.cols / streams;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const bool is_dead = !args.is_dead.empty() && args.is_dead[t];
    for (int64_t s = 0; s < streams; ++s) {
      const auto x = args.x.row(t).subspan(s * width, width);
      const auto key = args.kv.row(t).subspan(s * width, width);
      args.gate.row(t)[s] = is_dead ? 0.0f : gate_of(args, x, key, s * width);
    }
  }
}

void engram_add_value(const EngramInjectArgs& args) {
  const int64_t streams = args.gate.cols;
  const int64_t width = args.x.cols / streams;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const auto value = args.kv.row(t).subspan(streams * width, width);
    for (int64_t s = 0; s < streams; ++s) {
      const auto x = args.x.row(t).subspan(s * width, width);
      for (int64_t d = 0; d < width; ++d)
        x[d] = round_if(args.round_bf16, x[d] + args.gate.row(t)[s] * value[d]);
    }
  }
}

}  // namespace fathom::kernels::ref
