#include "kernels/vision_attention.h"

#include "kernels/cpu/vision_attention.h"

namespace fathom::kernels {

void vision_attention(const Context& context, const VisionAttentionArgs& args) {
  const auto is_like_q = [&](const auto& view) {
    return view.rows == args.q.rows && view.cols == args.q.cols;
  };
  FATHOM_CHECK(args.head_dim > 0 && args.q.cols % args.head_dim == 0 && is_like_q(args.k) &&
                   is_like_q(args.v) && is_like_q(args.y) && args.query_tile >= 0,
               "q [{}, {}], k [{}, {}], v [{}, {}], y [{}, {}], head_dim {}, query_tile {}",
               args.q.rows, args.q.cols, args.k.rows, args.k.cols, args.v.rows, args.v.cols,
               args.y.rows, args.y.cols, args.head_dim, args.query_tile);
  if (context.isa == Isa::kRef) return ref::vision_attention(args);
  cpu::vision_attention(context, args);
}

}  // namespace fathom::kernels
