#include "kernels/attention.h"

#include "kernels/cpu/attention.h"

namespace fathom::kernels {
namespace {

void check_lists(const AttentionArgs& args) {
  for (int64_t t = 0; t < args.q.rows; ++t) {
    const RowRange range = args.window_range[t];
    FATHOM_CHECK(
        range.count >= 0 && range.first >= 0 && range.first + range.count <= args.window.rows,
        "window rows {}+{} of {}", range.first, range.count, args.window.rows);
    if (!args.selected_index.data) continue;
    for (int32_t row : args.selected_index.row(t))
      FATHOM_CHECK(row < args.selected.rows, "selected row {} of {}", row, args.selected.rows);
  }
}

}  // namespace

void attention(const Context& context, const AttentionArgs& args) {
  const int64_t heads = static_cast<int64_t>(args.sink.size());
  FATHOM_CHECK(args.q.cols == heads * args.head_dim && args.y.rows == args.q.rows &&
                   args.y.cols == args.q.cols &&
                   static_cast<int64_t>(args.window_range.size()) == args.q.rows &&
                   args.window.cols == args.head_dim,
               "q [{}, {}], {} heads of {}, y [{}, {}], {} window ranges, rows of {}", args.q.rows,
               args.q.cols, heads, args.head_dim, args.y.rows, args.y.cols,
               args.window_range.size(), args.window.cols);
  FATHOM_CHECK(!args.selected_index.data ||
                   (args.selected_index.rows == args.q.rows && args.selected.cols == args.head_dim),
               "selected lists [{}, {}], rows of {}", args.selected_index.rows,
               args.selected_index.cols, args.selected.cols);
  check_lists(args);
  if (context.isa == Isa::kRef) return ref::attention(args);
  cpu::attention(context, args);
}

}  // namespace fathom::kernels
