#include "kernels/compress.h"

#include "kernels/cpu/lanes/compress.h"
#include "kernels/dispatch.h"

namespace fathom::kernels {

void pool_groups(const Context& context, const PoolGroupsArgs& args) {
  const auto& k = args.k;
  const auto& g = args.g;
  const auto& y = args.y;
  FATHOM_CHECK(
      k.rows == y.rows * args.ratio && g.rows == k.rows && k.cols == y.cols && g.cols == y.cols,
      "k [{}, {}], g [{}, {}], y [{}, {}], ratio {}", k.rows, k.cols, g.rows, g.cols, y.rows,
      y.cols, args.ratio);
  if (context.isa == Isa::kRef) return ref::pool_groups(args);
  const auto pool = FATHOM_PICK(context.isa, pool_group);
  for_row_ranges(
      context, args.y.rows, args.k.cols * args.ratio * 8, [&](int64_t first, int64_t count) {
        for (int64_t j = first; j < first + count; ++j)
          pool(args.k.row(j * args.ratio).data(), args.k.stride, args.g.row(j * args.ratio).data(),
               args.g.stride, args.ratio, args.y.row(j).data(), args.y.cols, args.round_bf16);
      });
}

}  // namespace fathom::kernels
