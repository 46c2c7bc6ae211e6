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

void engram_inject(const Context& context, const EngramInjectArgs& args) {
  const int64_t streams = args.gate.cols;
  const int64_t width = args.x.cols / streams;
  FATHOM_CHECK(args.x.cols == streams * width && args.kv.cols == (streams + 1) * width &&
                   args.kv.rows == args.x.rows && args.gate.rows == args.x.rows &&
                   static_cast<int64_t>(args.q_weight.size()) == args.x.cols &&
                   static_cast<int64_t>(args.k_weight.size()) == args.x.cols,
               "{} streams: x [{}, {}], kv [{}, {}], weights [{}] and [{}]", streams, args.x.rows,
               args.x.cols, args.kv.rows, args.kv.cols, args.q_weight.size(), args.k_weight.size());
  if (context.isa == Isa::kRef) return ref::engram_inject(args);
  const auto gate_of = FATHOM_PICK(context.isa, engram_gate);
  const auto inject_row = FATHOM_PICK(context.isa, engram_inject_row);
  for_row_ranges(context, args.x.rows, args.x.cols * 4, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t) {
      const bool is_dead = !args.is_dead.empty() && args.is_dead[t];
      const float* kv = args.kv.row(t).data();
      for (int64_t s = 0; s < streams; ++s) {
        const int64_t at = s * width;
        float* x = args.x.row(t).data() + at;
        const float gate = is_dead ? 0.0f
                                   : gate_of(x, kv + at, args.q_weight.data() + at,
                                             args.k_weight.data() + at, width, args.norm_eps);
        args.gate.row(t)[s] = gate;
        inject_row(x, kv + streams * width, gate, width, args.round_bf16);
      }
    }
  });
}

}  // namespace fathom::kernels
