#include "kernels/vision_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {
namespace {

void attend(const VisionAttentionArgs& args, int64_t query, int64_t column) {
  const auto slice = [&](const auto& view, int64_t row) {
    return view.row(row).subspan(column, args.head_dim);
  };
  std::vector<double> p(args.k.rows);
  double best = -INFINITY;
  for (int64_t j = 0; j < args.k.rows; ++j) {
    double dot = 0;
    for (int64_t d = 0; d < args.head_dim; ++d)
      dot += static_cast<double>(slice(args.q, query)[d]) * slice(args.k, j)[d];
    p[j] = dot * args.scale;
    best = std::max(best, p[j]);
  }
  double sum = 0;
  for (double& value : p) {
    sum += value = std::exp(value - best);
    if (args.round_probabilities) value = round_to_bf16(static_cast<float>(value));
  }
  for (int64_t d = 0; d < args.head_dim; ++d) {
    double weighted = 0;
    for (int64_t j = 0; j < args.k.rows; ++j) weighted += p[j] * slice(args.v, j)[d];
    slice(args.y, query)[d] = round_if(args.round_bf16, weighted / sum);
  }
}

}  // namespace

void vision_attention(const VisionAttentionArgs& args) {
  for (int64_t query = 0; query < args.q.rows; ++query)
    for (int64_t column = 0; column < args.q.cols; column += args.head_dim)
      attend(args, query, column);
}

}  // namespace fathom::kernels::ref
