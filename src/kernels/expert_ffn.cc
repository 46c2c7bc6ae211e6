#include "kernels/expert_ffn.h"

#include <algorithm>

#include "kernels/cpu/lanes/activation.h"
#include "kernels/dispatch.h"
#include "kernels/linear.h"

namespace fathom::kernels {
namespace {

// x with only the routed rows, copied one after another unless all are wanted.
MatrixView<const float> gathered(const ExpertFfnArgs& args, Scratch& scratch) {
  if (args.row.empty()) return args.x;
  const int64_t rows = static_cast<int64_t>(args.row.size());
  const MatrixView<float> copy(scratch.take<float>(rows * args.x.cols), rows, args.x.cols);
  for (int64_t i = 0; i < rows; ++i) {
    const auto from = args.x.row(args.row[i]);
    std::copy(from.begin(), from.end(), copy.row(i).begin());
  }
  return copy;
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
  const int64_t width = args.w1.rows;
  FATHOM_CHECK(
      args.w1.cols == args.x.cols && args.w3.rows == width && args.w3.cols == args.x.cols &&
          args.w2.cols == width && args.w2.rows == args.y.cols && args.y.rows == args.x.rows &&
          (args.weight.empty() || args.weight.size() == args.row.size()),
      "x [{}, {}], w1 [{}, {}], w2 [{}, {}], {} rows, {} weights", args.x.rows, args.x.cols, width,
      args.w1.cols, args.w2.rows, args.w2.cols, args.row.size(), args.weight.size());
  if (context.isa == Isa::kRef) return ref::expert_ffn(args);
  Scratch scratch(context.workspace);
  const MatrixView<const float> x = gathered(args, scratch);
  const auto take = [&](int64_t cols) {
    return MatrixView<float>(scratch.take<float>(x.rows * cols), x.rows, cols);
  };
  const MatrixView<float> gate = take(width);
  const MatrixView<float> up = take(width);
  const MatrixView<float> down = take(args.y.cols);
  const bool round = args.round_bf16;
  const LinearArgs gate_and_up[] = {
      {.x = x, .weight = args.w1, .y = gate, .round_bf16 = round},
      {.x = x, .weight = args.w3, .y = up, .round_bf16 = round},
  };
  linear_together(context, gate_and_up);
  swiglu(context, {.gate = gate,
                   .up = up,
                   .weight = args.weight,
                   .limit = args.limit,
                   .y = gate,
                   .round_bf16 = round});
  linear(context, {.x = gate,
                   .weight = args.w2,
                   .y = down,
                   .quantise_activations = args.quantise_activations,
                   .round_bf16 = round});
  const auto add_one = FATHOM_PICK(context.isa, add_row);
  for_row_ranges(context, x.rows, args.y.cols, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      float* y = args.y.row(args.row.empty() ? i : args.row[i]).data();
      add_one(y, down.row(i).data(), y, args.y.cols, false);
    }
  });
}

}  // namespace fathom::kernels
