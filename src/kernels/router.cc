#include "kernels/router.h"

#include <algorithm>

#include "kernels/cpu/lanes/activation.h"
#include "kernels/dispatch.h"

namespace fathom::kernels {
namespace {

// The best score + bias not chosen yet, ties to the lower expert. `active` passes over E values are
// cheaper than a sort while A is small.
int32_t best_left(std::span<const float> score, std::span<const float> bias,
                  std::span<const int32_t> chosen) {
  int32_t best = -1;
  float best_value = 0;
  for (int32_t e = 0; e < static_cast<int32_t>(score.size()); ++e) {
    const float value = score[e] + bias[e];
    if (best >= 0 && !(value > best_value)) continue;
    if (std::find(chosen.begin(), chosen.end(), e) != chosen.end()) continue;
    best = e;
    best_value = value;
  }
  return best;
}

void choose(const RouterArgs& args, int64_t t) {
  const auto score = args.score.row(t);
  const auto expert = args.expert.row(t);
  const auto weight = args.weight.row(t);
  const bool is_image = !args.is_image.empty() && args.is_image[t];
  const auto bias = is_image ? args.bias_image : args.bias;
  float sum = 0;
  for (size_t a = 0; a < expert.size(); ++a) {
    expert[a] = best_left(score, bias, expert.first(a));
    sum += score[expert[a]];
  }
  const bool divides = args.normalise && expert.size() > 1;
  for (size_t a = 0; a < expert.size(); ++a) {
    const float own = score[expert[a]];
    weight[a] = (divides ? own / (sum + 1e-20f) : own) * args.routed_scale;
  }
}

}  // namespace

void route(const Context& context, const RouterArgs& args) {
  const int64_t experts = args.logits.cols;
  const bool has_images = !args.is_image.empty();
  FATHOM_CHECK(args.score.rows == args.logits.rows && args.score.cols == experts &&
                   static_cast<int64_t>(args.bias.size()) == experts &&
                   (!has_images || static_cast<int64_t>(args.bias_image.size()) == experts) &&
                   args.expert.rows == args.logits.rows && args.weight.rows == args.logits.rows &&
                   args.weight.cols == args.expert.cols && args.expert.cols <= experts,
               "logits [{}, {}], score [{}, {}], bias [{}], expert [{}, {}]", args.logits.rows,
               experts, args.score.rows, args.score.cols, args.bias.size(), args.expert.rows,
               args.expert.cols);
  if (context.isa == Isa::kRef) return ref::route(args);
  const auto softplus = FATHOM_PICK(context.isa, sqrt_softplus_row);
  const auto sigmoid = FATHOM_PICK(context.isa, sigmoid_row);
  const auto softmax = FATHOM_PICK(context.isa, softmax_row);
  const auto score_row = args.kind == RouterScore::kSqrtSoftplus ? softplus
                         : args.kind == RouterScore::kSigmoid    ? sigmoid
                                                                 : softmax;
  for_row_ranges(context, args.logits.rows, experts * 8, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t) {
      score_row(args.logits.row(t).data(), args.temperature, args.score.row(t).data(), experts);
      choose(args, t);
    }
  });
}

}  // namespace fathom::kernels
