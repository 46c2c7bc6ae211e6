#include "kernels/rms_norm.h"

#include "kernels/cpu/lanes/norm.h"
#include "kernels/dispatch.h"

namespace fathom::kernels {

void rms_norm(const Context& context, const RmsNormArgs& args) {
  const auto& x = args.x;
  const auto& y = args.y;
  FATHOM_CHECK(
      x.rows == y.rows && x.cols == y.cols && static_cast<int64_t>(args.weight.size()) == x.cols,
      "x [{}, {}], y [{}, {}], weight [{}]", x.rows, x.cols, y.rows, y.cols, args.weight.size());
  if (context.isa == Isa::kRef) return ref::rms_norm(args);
  const auto norm_row = FATHOM_PICK(context.isa, rms_norm_row);
  for_row_ranges(context, x.rows, x.cols, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t)
      norm_row(args.x.row(t).data(), args.weight.data(), args.y.row(t).data(), args.x.cols,
               args.eps, args.round_bf16);
  });
}

}  // namespace fathom::kernels
