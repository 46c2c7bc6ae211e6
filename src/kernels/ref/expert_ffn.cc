#include "kernels/expert_ffn.h"

#include <algorithm>
#include <vector>

#include "kernels/linear.h"
#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {

void swiglu(const SwigluArgs& args) {
  for (int64_t m = 0; m < args.gate.rows; ++m) {
    const double weight = args.weight.empty() ? 1.0 : args.weight[m];
    for (int64_t f = 0; f < args.gate.cols; ++f) {
      float gate = args.gate.row(m)[f];
      float up = args.up.row(m)[f];
      if (args.limit > 0) {
        gate = std::min(gate, args.limit);
        up = std::clamp(up, -args.limit, args.limit);
      }
      args.y.row(m)[f] = round_if(args.round_bf16, weight * (gate * sigmoid(gate) * up));
    }
  }
}

void expert_ffn(const ExpertFfnArgs& args) {
  const int64_t width = args.w1.rows;
  const int64_t rows = args.row.empty() ? args.x.rows : static_cast<int64_t>(args.row.size());
  std::vector<float> gate(width), up(width), down(args.y.cols);
  const auto as_row = [](std::vector<float>& v) {
    return MatrixView<float>(v.data(), 1, static_cast<int64_t>(v.size()));
  };
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t t = args.row.empty() ? i : args.row[i];
    const bool round = args.round_bf16;
    const auto x = args.x.rows_from(t, 1);
    linear({.x = x, .weight = args.w1, .y = as_row(gate), .round_bf16 = round});
    linear({.x = x, .weight = args.w3, .y = as_row(up), .round_bf16 = round});
    swiglu({.gate = as_row(gate),
            .up = as_row(up),
            .weight = args.weight.empty() ? args.weight : args.weight.subspan(i, 1),
            .limit = args.limit,
            .y = as_row(gate),
            .round_bf16 = round});
    linear({.x = as_row(gate),
            .weight = args.w2,
            .y = as_row(down),
            .quantise_activations = args.quantise_activations,
            .round_bf16 = round});
    for (int64_t d = 0; d < args.y.cols; ++d) args.y.row(t)[d] += down[d];
  }
}

}  // namespace fathom::kernels::ref
