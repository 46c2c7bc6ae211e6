#include "kernels/expert_ffn.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/lanes/activation.h"
#include "kernels/dispatch.h"
#include "kernels/linear.h"

namespace fathom::kernels {
namespace {

// Up to this many rows an expert's products are too small for a job of their own (linear.h).
constexpr int64_t kRowsTogether = 8;

// x with only the routed rows, copied one after another unless all or one are wanted.
MatrixView<const float> gathered(const ExpertFfnArgs& args, Scratch& scratch) {
  if (args.row.empty()) return args.x;
  if (args.row.size() == 1) return args.x.rows_from(args.row[0], 1);
  const int64_t rows = static_cast<int64_t>(args.row.size());
  const MatrixView<float> copy(scratch.take<float>(rows * args.x.cols), rows, args.x.cols);
  for (int64_t i = 0; i < rows; ++i) {
    const auto from = args.x.row(args.row[i]);
    std::copy(from.begin(), from.end(), copy.row(i).begin());
  }
  return copy;
}

int64_t row_count(const ExpertFfnArgs& args) {
  return args.row.empty() ? args.x.rows : static_cast<int64_t>(args.row.size());
}

void check(const ExpertFfnArgs& args) {
  const int64_t width = args.w1.rows;
  FATHOM_CHECK(
      args.w1.cols == args.x.cols && args.w3.rows == width && args.w3.cols == args.x.cols &&
          args.w2.cols == width && args.w2.rows == args.y.cols && args.y.rows == args.x.rows &&
          (args.weight.empty() || args.weight.size() == args.row.size()),
      "x [{}, {}], w1 [{}, {}], w2 [{}, {}], {} rows, {} weights", args.x.rows, args.x.cols, width,
      args.w1.cols, args.w2.rows, args.w2.cols, args.row.size(), args.weight.size());
}

void add_down(const Context& context, const ExpertFfnArgs& args, MatrixView<const float> down) {
  const auto add_one = FATHOM_PICK(context.isa, add_row);
  for_row_ranges(context, down.rows, args.y.cols, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      float* y = args.y.row(args.row.empty() ? i : args.row[i]).data();
      add_one(y, down.row(i).data(), y, args.y.cols, false);
    }
  });
}

// Experts with equally many rows: all gates and ups, all activations, all downs, then the sums in
// order.
void run(const Context& context, std::span<const ExpertFfnArgs> experts) {
  Scratch scratch(context.workspace);
  const int64_t rows = row_count(experts.front());
  const auto take = [&](int64_t cols) {
    return MatrixView<float>(scratch.take<float>(rows * cols), rows, cols);
  };
  std::vector<LinearArgs> gates_and_ups;
  for (const ExpertFfnArgs& args : experts) {
    const MatrixView<const float> x = gathered(args, scratch);
    for (const WeightView& weight : {args.w1, args.w3})
      gates_and_ups.push_back(
          {.x = x, .weight = weight, .y = take(weight.rows), .round_bf16 = args.round_bf16});
  }
  linear_together(context, gates_and_ups);

  std::vector<LinearArgs> downs;
  for (size_t e = 0; e < experts.size(); ++e) {
    const ExpertFfnArgs& args = experts[e];
    const MatrixView<float> gate = gates_and_ups[2 * e].y;
    swiglu(context, {.gate = gate,
                     .up = gates_and_ups[2 * e + 1].y,
                     .weight = args.weight,
                     .limit = args.limit,
                     .y = gate,
                     .round_bf16 = args.round_bf16});
    downs.push_back({.x = gate,
                     .weight = args.w2,
                     .y = take(args.y.cols),
                     .quantise_activations = args.quantise_activations,
                     .round_bf16 = args.round_bf16});
  }
  linear_together(context, downs);
  for (size_t e = 0; e < experts.size(); ++e) add_down(context, experts[e], downs[e].y);
}

}  // namespace

void swiglu(const Context& context, const SwigluArgs& args) {
  FATHOM_CHECK(
      args.gate.rows == args.up.rows && args.gate.cols == args.up.cols &&
          args.y.rows == args.gate.rows && args.y.cols == args.gate.cols &&
          (args.weight.empty() || static_cast<int64_t>(args.weight.size()) == args.gate.rows),
      "gate [{}, {}], up [{}, {}], y [{}, {}], weight [{}]", args.gate.rows, args.gate.cols,
      args.up.rows, args.up.cols, args.y.rows, args.y.cols, args.weight.size());
  if (context.isa == Isa::kRef) return ref::swiglu(args);
  const auto swiglu_one = FATHOM_PICK(context.isa, swiglu_row);
  for_row_ranges(context, args.gate.rows, args.gate.cols * 8, [&](int64_t first, int64_t count) {
    for (int64_t m = first; m < first + count; ++m)
      swiglu_one(args.gate.row(m).data(), args.up.row(m).data(),
                 args.weight.empty() ? 1.0f : args.weight[m], args.limit, args.y.row(m).data(),
                 args.gate.cols, args.round_bf16);
  });
}

void expert_ffn(const Context& context, const ExpertFfnArgs& args) {
  expert_ffns(context, {&args, 1});
}

void expert_ffns(const Context& context, std::span<const ExpertFfnArgs> experts) {
  for (const ExpertFfnArgs& args : experts) {
    check(args);
    if (context.isa == Isa::kRef) ref::expert_ffn(args);
  }
  if (context.isa == Isa::kRef || experts.empty()) return;
  const int64_t rows = row_count(experts.front());
  const bool are_alike = std::ranges::all_of(
      experts, [&](const ExpertFfnArgs& args) { return row_count(args) == rows; });
  if (are_alike && rows <= kRowsTogether) return run(context, experts);
  for (const ExpertFfnArgs& args : experts) run(context, {&args, 1});
}

}  // namespace fathom::kernels
