#include "kernels/linear.h"

#include <vector>

#include "kernels/quantise.h"
#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {
namespace {

double weight_at(const WeightView& w, int64_t n, int64_t k) {
  const int64_t at = n * w.cols + k;
  switch (w.dtype) {
    case DType::kF32:
      return static_cast<const float*>(w.data)[at];
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(w.data)[at]);
    case DType::kF8E4M3: {
      const uint8_t scale = w.scales[n / 32 * ((w.cols + 31) / 32) + k / 32];
      return static_cast<double>(e4m3_to_f32(static_cast<const uint8_t*>(w.data)[at])) *
             e8m0_to_f32(scale);
    }
    default: {
      const uint8_t pair = static_cast<const uint8_t*>(w.data)[at / 2];
      const uint8_t scale = w.scales[n * (w.cols / 32) + k / 32];
      return static_cast<double>(e2m1_to_f32(k % 2 == 0 ? pair & 15 : pair >> 4)) *
             e8m0_to_f32(scale);
    }
  }
}

}  // namespace

void linear(const LinearArgs& args) {
  std::vector<float> row(args.x.cols);
  for (int64_t m = 0; m < args.x.rows; ++m) {
    const auto x = args.x.row(m);
    row.assign(x.begin(), x.end());
    if (args.quantise_activations) {
      const MatrixView<float> view(row.data(), 1, args.x.cols);
      quantise({.x = view, .y = view, .quantiser = Quantiser::kFp8Block32});
    }
    for (int64_t n = 0; n < args.weight.rows; ++n) {
      double sum = args.bias ? args.bias[n] : 0.0;
      for (int64_t k = 0; k < args.x.cols; ++k) sum += row[k] * weight_at(args.weight, n, k);
      args.y.row(m)[n] = round_if(args.round_bf16, sum);
    }
  }
}

}  // namespace fathom::kernels::ref
