#include "kernels/compress.h"

#include <algorithm>
#include <cmath>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {

void pool_groups(const PoolGroupsArgs& args) {
  for (int64_t j = 0; j < args.y.rows; ++j) {
    for (int64_t c = 0; c < args.y.cols; ++c) {
      const int64_t first = j * args.ratio;
      double best = args.g.row(first)[c];
      for (int64_t i = 1; i < args.ratio; ++i)
        best = std::max<double>(best, args.g.row(first + i)[c]);
      double weighted = 0;
      double sum = 0;
      for (int64_t i = 0; i < args.ratio; ++i) {
        const double weight = std::exp(args.g.row(first + i)[c] - best);
        weighted += weight * args.k.row(first + i)[c];
        sum += weight;
      }
      args.y.row(j)[c] = round_if(args.round_bf16, weighted / sum);
    }
  }
}

}  // namespace fathom::kernels::ref
