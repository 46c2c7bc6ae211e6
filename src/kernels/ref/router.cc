#include "kernels/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {
namespace {

void score_row(const RouterArgs& args, std::span<const float> logits, std::span<float> score) {
  double best = -INFINITY;
  for (float logit : logits) best = std::max<double>(best, logit / args.temperature);
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit / args.temperature - best);
  for (size_t e = 0; e < logits.size(); ++e) {
    const double t = logits[e] / args.temperature;
    double value = 0;
    switch (args.kind) {
      case RouterScore::kSqrtSoftplus:
        value = std::sqrt(t > 20 ? t : std::log1p(std::exp(t)));
        break;
      case RouterScore::kSigmoid:
        value = sigmoid(t);
        break;
      case RouterScore::kSoftmax:
        value = std::exp(t - best) / sum;
        break;
    }
    score[e] = static_cast<float>(value);
  }
}

}  // namespace

void route(const RouterArgs& args) {
  const int64_t active = args.expert.cols;
  for (int64_t t = 0; t < args.logits.rows; ++t) {
    const auto score = args.score.row(t);
    score_row(args, args.logits.row(t), score);
    const bool is_image = !args.is_image.empty() && args.is_image[t];
    const auto bias = is_image ? args.bias_image : args.bias;
    std::vector<float> biased(score.size());
    for (size_t e = 0; e < score.size(); ++e) biased[e] = score[e] + bias[e];
    std::vector<int32_t> order(score.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return biased[a] > biased[b]; });
    double sum = 1e-20;
    for (int64_t a = 0; a < active; ++a) sum += score[order[a]];
    const double divisor = args.normalise && active > 1 ? sum : 1.0;
    for (int64_t a = 0; a < active; ++a) {
      args.expert.row(t)[a] = order[a];
      args.weight.row(t)[a] = static_cast<float>(score[order[a]] / divisor * args.routed_scale);
    }
  }
}

}  // namespace fathom::kernels::ref
