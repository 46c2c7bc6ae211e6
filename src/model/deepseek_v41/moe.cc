#include "model/deepseek_v41/moe.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/expert_ffn.h"
#include "kernels/router.h"

namespace fathom::v41 {
namespace {

kernels::RouterScore router_score(ScoringFunc scoring) {
  switch (scoring) {
    case ScoringFunc::kSoftmax:
      return kernels::RouterScore::kSoftmax;
    case ScoringFunc::kSigmoid:
      return kernels::RouterScore::kSigmoid;
    case ScoringFunc::kSqrtSoftplus:
      break;
  }
  return kernels::RouterScore::kSqrtSoftplus;
}

struct Routing {
  MatrixView<int32_t> expert;  // [n, A]
  MatrixView<float> weight;    // [n, A]
};

// Which experts each row goes to, and with what weight (§4.1).
Status route(const Pass& pass, int32_t layer, MatrixView<const float> x, const Step& step,
             const Routing& routing) {
  const TextConfig& config = pass.config;
  const GateWeights& gate = pass.layer(layer).ffn.gate;
  kernels::Scratch scratch(pass.workspace());
  const int64_t expert_count = pass.layer(layer).ffn.expert_count;
  const auto logits = take_rows(scratch, x.rows, expert_count);
  const auto score = take_rows(scratch, x.rows, expert_count);
  pass.ops.linear(x, gate.weight, logits, Output::kFull);
  kernels::route(pass.ops.context(),
                 {.logits = logits,
                  .kind = router_score(config.scoring_func),
                  .temperature = static_cast<float>(config.gate_temp),
                  .bias = gate.bias,
                  .bias_image = gate.bias_vl,
                  .is_image = step.is_picture(),
                  .normalise = config.norm_topk_prob,
                  .routed_scale = static_cast<float>(config.routed_scaling_factor),
                  .score = score,
                  .expert = routing.expert,
                  .weight = routing.weight});
  FATHOM_TRY(pass.taps.pass(layer, "router.scores", score));
  pass.taps.show(layer, "router.ids", routing.expert);
  return pass.taps.pass(layer, "router.weights", routing.weight);
}

// The rows of each expert that has any, experts ascending.
struct Assignment {
  std::vector<ExpertId> experts;
  std::vector<int64_t> first;  // [experts + 1] into rows and weights
  std::vector<int32_t> rows;
  std::vector<float> weights;
};

Assignment assign(const Routing& routing) {
  struct Slot {
    int32_t expert;
    int32_t row;
    float weight;
  };
  std::vector<Slot> slots;
  for (int64_t r = 0; r < routing.expert.rows; ++r)
    for (size_t a = 0; a < static_cast<size_t>(routing.expert.cols); ++a)
      slots.push_back(
          {routing.expert.row(r)[a], static_cast<int32_t>(r), routing.weight.row(r)[a]});
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.expert < b.expert; });
  Assignment assignment;
  for (const Slot& slot : slots) {
    if (assignment.experts.empty() || assignment.experts.back().value != slot.expert) {
      assignment.experts.push_back(ExpertId{slot.expert});
      assignment.first.push_back(static_cast<int64_t>(assignment.rows.size()));
    }
    assignment.rows.push_back(slot.row);
    assignment.weights.push_back(slot.weight);
  }
  assignment.first.push_back(static_cast<int64_t>(assignment.rows.size()));
  return assignment;
}

kernels::ExpertFfnArgs ffn_args(const Pass& pass, MatrixView<const float> x, MatrixView<float> y) {
  kernels::ExpertFfnArgs args;
  args.x = x;
  args.limit = static_cast<float>(pass.config.swiglu_limit);
  args.quantise_activations = pass.ops.policy().quantise_activations;
  args.round_bf16 = pass.ops.rounds();
  args.y = y;
  return args;
}

// out += Σ over the routed experts, in ascending id: the order of the sum is part of the result.
Status add_routed(const Pass& pass, int32_t layer, MatrixView<const float> x,
                  const Routing& routing, MatrixView<float> out) {
  const Assignment assignment = assign(routing);
  FATHOM_ASSIGN(ExpertPins pins, pass.experts.pin(LayerId{layer}, assignment.experts));
  std::vector<kernels::ExpertFfnArgs> experts;
  for (int64_t i = 0; i < pins.count(); ++i) {
    FATHOM_ASSIGN(const ExpertWeights weights, pins.wait(i));
    const auto first = static_cast<size_t>(assignment.first[static_cast<size_t>(i)]);
    const auto end = static_cast<size_t>(assignment.first[static_cast<size_t>(i) + 1]);
    kernels::ExpertFfnArgs& args = experts.emplace_back(ffn_args(pass, x, out));
    args.row = std::span(assignment.rows).subspan(first, end - first);
    args.weight = std::span(assignment.weights).subspan(first, end - first);
    args.w1 = weights.w1;
    args.w2 = weights.w2;
    args.w3 = weights.w3;
  }
  kernels::expert_ffns(pass.ops.context(), experts);
  return Status::ok();
}

void clear(MatrixView<float> rows) {
  std::fill_n(rows.data, rows.rows * rows.cols, 0.0F);
}

}  // namespace

Status mix_experts(const Pass& pass, int32_t layer, MatrixView<const float> x, const Step& step,
                   MatrixView<float> out) {
  const int64_t active = pass.experts_per_token(layer);
  const SharedExpertWeights& weights = pass.layer(layer).ffn.shared_experts;
  kernels::Scratch scratch(pass.workspace());
  const Routing routing = {.expert = {scratch.take<int32_t>(x.rows * active), x.rows, active},
                           .weight = take_rows(scratch, x.rows, active)};
  const auto copy = take_rows(scratch, x.rows, x.cols);
  const auto shared = take_rows(scratch, x.rows, x.cols);

  FATHOM_TRY(route(pass, layer, x, step, routing));
  const MatrixView<const float> quantised = pass.ops.quantised(x, copy);
  clear(out);
  FATHOM_TRY(add_routed(pass, layer, quantised, routing, out));

  clear(shared);
  kernels::ExpertFfnArgs args = ffn_args(pass, quantised, shared);
  args.w1 = weights.w1;
  args.w2 = weights.w2;
  args.w3 = weights.w3;
  kernels::expert_ffn(pass.ops.context(), args);
  FATHOM_TRY(pass.taps.pass(layer, "shared_out", shared));
  kernels::add(pass.ops.context(),
               {.a = out, .b = shared, .y = out, .round_bf16 = pass.ops.rounds()});
  return pass.taps.pass(layer, "ffn_out", out);
}

}  // namespace fathom::v41
