#include "kernels/rms_norm.h"

#include <cmath>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {

void rms_norm(const RmsNormArgs& args) {
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const auto x = args.x.row(t);
    const auto y = args.y.row(t);
    double sum_sq = 0;
    for (float v : x) sum_sq += static_cast<double>(v) * v;
    const float variance = static_cast<float>(sum_sq / static_cast<double>(x.size())) + args.eps;
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance)));
    for (size_t c = 0; c < x.size(); ++c) {
      y[c] = round_if(args.round_bf16, args.weight[c] * (x[c] * scale));
    }
  }
}

}  // namespace fathom::kernels::ref
