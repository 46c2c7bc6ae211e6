#include "kernels/rope.h"

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {

void rope(const RopeArgs& args) {
  const int64_t half = args.table.cols / 2;
  const bool adjacent = args.pairs == RopePairs::kAdjacent;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const float* cosines = args.table.row(t).data();
    const float* sines = cosines + half;
    for (int64_t head = 0; head < args.x.cols; head += args.head_dim) {
      float* rotary = args.x.row(t).data() + head + args.head_dim - 2 * half;
      for (int64_t i = 0; i < half; ++i) {
        float& a = adjacent ? rotary[2 * i] : rotary[i];
        float& b = adjacent ? rotary[2 * i + 1] : rotary[half + i];
        const float cosine = cosines[i];
        const float sine = args.inverse ? -sines[i] : sines[i];
        const float turned_a = a * cosine - b * sine;
        const float turned_b = a * sine + b * cosine;
        a = round_if(args.round_bf16, turned_a);
        b = round_if(args.round_bf16, turned_b);
      }
    }
  }
}

}  // namespace fathom::kernels::ref
