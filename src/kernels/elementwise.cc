#include "kernels/elementwise.h"

#include <atomic>
#include <cmath>

#include "kernels/cpu/lanes/activation.h"
#include "kernels/dispatch.h"
#include "tensor/codec.h"

namespace fathom::kernels {
namespace {

template <typename A, typename B>
void check_same_shape(const MatrixView<A>& a, const MatrixView<B>& b) {
  FATHOM_CHECK(a.rows == b.rows && a.cols == b.cols, "[{}, {}] beside [{}, {}]", a.rows, a.cols,
               b.rows, b.cols);
}

// Runs row(t) for every row on the pool.
template <typename Row>
void for_rows(const Context& context, int64_t rows, int64_t row_cost, const Row& row) {
  for_row_ranges(context, rows, row_cost, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t) row(t);
  });
}

}  // namespace

void embed(MatrixView<const uint16_t> table, std::span<const TokenId> token, MatrixView<float> y) {
  FATHOM_CHECK(y.rows == static_cast<int64_t>(token.size()) && y.cols == table.cols,
               "{} tokens of {} channels into [{}, {}]", token.size(), table.cols, y.rows, y.cols);
  for (int64_t t = 0; t < y.rows; ++t) {
    FATHOM_CHECK(token[t] >= 0 && token[t] < table.rows, "token {} of {}", token[t], table.rows);
    widen_bf16(table.rows_from(token[t], 1), y.rows_from(t, 1));
  }
}

void widen_bf16(MatrixView<const uint16_t> x, MatrixView<float> y) {
  check_same_shape(x, y);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t c = 0; c < x.cols; ++c) y.row(t)[c] = bf16_to_f32(x.row(t)[c]);
}

void narrow_bf16(MatrixView<const float> x, MatrixView<uint16_t> y) {
  check_same_shape(x, y);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t c = 0; c < x.cols; ++c) y.row(t)[c] = f32_to_bf16(x.row(t)[c]);
}

void add(const Context& context, const AddArgs& args) {
  check_same_shape(args.a, args.b);
  check_same_shape(args.a, args.y);
  if (context.isa == Isa::kRef) return ref::add(args);
  const auto add_one = FATHOM_PICK(context.isa, add_row);
  for_rows(context, args.a.rows, args.a.cols, [&](int64_t t) {
    add_one(args.a.row(t).data(), args.b.row(t).data(), args.y.row(t).data(), args.a.cols,
            args.round_bf16);
  });
}

void silu_mul(const Context& context, const SiluMulArgs& args) {
  check_same_shape(args.gate, args.up);
  check_same_shape(args.gate, args.y);
  if (context.isa == Isa::kRef) return ref::silu_mul(args);
  const auto silu_mul_one = FATHOM_PICK(context.isa, silu_mul_row);
  for_rows(context, args.gate.rows, args.gate.cols * 8, [&](int64_t t) {
    silu_mul_one(args.gate.row(t).data(), args.up.row(t).data(), args.y.row(t).data(),
                 args.gate.cols, args.round_bf16);
  });
}

void gelu_erf(const Context& context, const GeluArgs& args) {
  check_same_shape(args.x, args.y);
  if (context.isa == Isa::kRef) return ref::gelu_erf(args);
  // The library's erfc in double on every ISA: the aligner alone uses it, 5 M values a picture.
  for_rows(context, args.x.rows, args.x.cols * 16, [&](int64_t t) {
    for (int64_t c = 0; c < args.x.cols; ++c) {
      const double x = args.x.row(t)[c];
      const float y = static_cast<float>(0.5 * x * std::erfc(-x * M_SQRT1_2));
      args.y.row(t)[c] = args.round_bf16 ? round_to_bf16(y) : y;
    }
  });
}

bool all_finite(const Context& context, MatrixView<const float> x) {
  if (context.isa == Isa::kRef) return ref::all_finite(x);
  const auto is_finite = FATHOM_PICK(context.isa, is_finite_row);
  std::atomic<bool> result{true};
  for_rows(context, x.rows, x.cols, [&](int64_t t) {
    if (!is_finite(x.row(t).data(), x.cols)) result.store(false, std::memory_order_relaxed);
  });
  return result.load();
}

}  // namespace fathom::kernels
