#include "kernels/linear.h"

#include "kernels/cpu/gemm.h"

namespace fathom::kernels {
namespace {

void check(const LinearArgs& args) {
  const WeightView& w = args.weight;
  FATHOM_CHECK(args.x.cols == w.cols && args.y.cols == w.rows && args.y.rows == args.x.rows,
               "x [{}, {}], weight [{}, {}], y [{}, {}]", args.x.rows, args.x.cols, w.rows, w.cols,
               args.y.rows, args.y.cols);
  const bool is_scaled = w.dtype == DType::kF8E4M3 || w.dtype == DType::kI8;
  FATHOM_CHECK(is_scaled || w.dtype == DType::kBF16 || w.dtype == DType::kF32, "weight of type {}",
               dtype_name(w.dtype));
  FATHOM_CHECK(!is_scaled || w.scales != nullptr, "{} weight without scales", dtype_name(w.dtype));
  FATHOM_CHECK(w.cols % 32 == 0 || (w.dtype != DType::kI8 && !args.quantise_activations),
               "K = {} is no multiple of 32", w.cols);
}

}  // namespace

WeightView weight_rows(const WeightView& weight, int64_t first, int64_t count) {
  FATHOM_CHECK(first >= 0 && count >= 0 && first + count <= weight.rows, "rows {}+{} of {}", first,
               count, weight.rows);
  WeightView part = weight;
  part.rows = count;
  const bool is_packed = weight.dtype == DType::kI8;
  const int64_t row_bytes = is_packed ? weight.cols / 2 : weight.cols * dtype_bytes(weight.dtype);
  part.data = static_cast<const uint8_t*>(weight.data) + first * row_bytes;
  if (is_packed) {
    part.scales = weight.scales + first * (weight.cols / 32);
  } else if (weight.dtype == DType::kF8E4M3) {
    FATHOM_CHECK(first % 32 == 0, "row {} cuts a scale block of 32 rows", first);
    part.scales = weight.scales + first / 32 * ((weight.cols + 31) / 32);
  }
  return part;
}

void linear(const Context& context, const LinearArgs& args) {
  check(args);
  if (context.isa == Isa::kRef) return ref::linear(args);
  cpu::linear(context, args);
}

void linear_together(const Context& context, std::span<const LinearArgs> all) {
  for (const LinearArgs& args : all) {
    check(args);
    FATHOM_CHECK(args.x.rows == all.front().x.rows, "{} rows beside {}", args.x.rows,
                 all.front().x.rows);
    if (context.isa == Isa::kRef) ref::linear(args);
  }
  if (context.isa != Isa::kRef && !all.empty()) cpu::linear_together(context, all);
}

}  // namespace fathom::kernels
