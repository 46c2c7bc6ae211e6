#include "kernels/engram.h"

#include <array>

#include "kernels/cpu/lanes/norm.h"
#include "kernels/dispatch.h"
#include "tensor/codec.h"

namespace fathom::kernels {

void decode_fp8_rows(MatrixView<const uint8_t> codes, MatrixView<const uint8_t> scales,
                     MatrixView<float> y) {
  FATHOM_CHECK(codes.rows == y.rows && codes.cols == y.cols && scales.rows == y.rows &&
                   scales.cols * 32 == y.cols,
               "codes [{}, {}], scales [{}, {}], y [{}, {}]", codes.rows, codes.cols, scales.rows,
               scales.cols, y.rows, y.cols);
  static const auto values = [] {
    std::array<float, 256> table;
    for (int code = 0; code < 256; ++code) table[code] = e4m3_to_f32(static_cast<uint8_t>(code));
    return table;
  }();
  for (int64_t t = 0; t < y.rows; ++t)
    for (int64_t c = 0; c < y.cols; ++c)
      y.row(t)[c] = values[codes.row(t)[c]] * e8m0_to_f32(scales.row(t)[c / 32]);
}

namespace {

void check_inject(const EngramInjectArgs& args) {
  const int64_t streams = args.gate.cols;
  const int64_t width = args.x.cols / streams;
  FATHOM_CHECK(args.x.cols == streams * width && args.kv.cols == (streams + 1) * width &&
                   args.kv.rows == args.x.rows && args.gate.rows == args.x.rows &&
                   static_cast<int64_t>(args.q_weight.size()) == args.x.cols &&
                   static_cast<int64_t>(args.k_weight.size()) == args.x.cols,
               "{} streams: x [{}, {}], kv [{}, {}], weights [{}] and [{}]", streams, args.x.rows,
               args.x.cols, args.kv.rows, args.kv.cols, args.q_weight.size(), args.k_weight.size());
}

// Runs stream(t, s, first channel of s) for every token and stream on the pool.
template <typename Stream>
void for_streams(const Context& context, const EngramInjectArgs& args, const Stream& stream) {
  const int64_t streams = args.gate.cols;
  for_row_ranges(context, args.x.rows, args.x.cols * 2, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t)
      for (int64_t s = 0; s < streams; ++s) stream(t, s, s * (args.x.cols / streams));
  });
}

}  // namespace

void engram_gate(const Context& context, const EngramInjectArgs& args) {
  check_inject(args);
  if (context.isa == Isa::kRef) return ref::engram_gate(args);
  const auto gate_of = FATHOM_PICK(context.isa, engram_gate_stream);
  for_streams(context, args, [&](int64_t t, int64_t s, int64_t at) {
    const bool is_dead = !args.is_dead.empty() && args.is_dead[t];
    args.gate.row(t)[s] =
        is_dead ? 0.0f
                : gate_of(&args.x.row(t)[at], &args.kv.row(t)[at], &args.q_weight[at],
                          &args.k_weight[at], args.x.cols / args.gate.cols, args.norm_eps);
  });
}

void engram_add_value(const Context& context, const EngramInjectArgs& args) {
  check_inject(args);
  if (context.isa == Isa::kRef) return ref::engram_add_value(args);
  const auto add_value = FATHOM_PICK(context.isa, engram_inject_row);
  for_streams(context, args, [&](int64_t t, int64_t s, int64_t at) {
    add_value(&args.x.row(t)[at], &args.kv.row(t)[args.x.cols], args.gate.row(t)[s],
              args.x.cols / args.gate.cols, args.round_bf16);
  });
}

void engram_inject(const Context& context, const EngramInjectArgs& args) {
  engram_gate(context, args);
  engram_add_value(context, args);
}

}  // namespace fathom::kernels
