#include "kernels/engram.h"

#include <algorithm>
#include <cmath>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {
namespace {

double gate_of(const EngramInjectArgs& args, std::span<const float> x, std::span<const float> key,
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
  dot /= std::sqrt(x_sq / width + args.norm_eps) * std::sqrt(key_sq / width + args.norm_eps);
  dot /= std::sqrt(width);
  return sigmoid(std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot));
}

}  // namespace

void engram_inject(const EngramInjectArgs& args) {
  const int64_t streams = args.gate.cols;
  const int64_t width = args.x.cols / streams;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const bool is_dead = !args.is_dead.empty() && args.is_dead[t];
    const auto value = args.kv.row(t).subspan(streams * width, width);
    for (int64_t s = 0; s < streams; ++s) {
      const auto x = args.x.row(t).subspan(s * width, width);
      const auto key = args.kv.row(t).subspan(s * width, width);
      const float gate = is_dead ? 0.0f : static_cast<float>(gate_of(args, x, key, s * width));
      args.gate.row(t)[s] = gate;
      for (int64_t d = 0; d < width; ++d) x[d] = round_if(args.round_bf16, x[d] + gate * value[d]);
    }
  }
}

}  // namespace fathom::kernels::ref
