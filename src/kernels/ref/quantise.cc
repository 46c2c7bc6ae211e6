#include "kernels/quantise.h"

#include <algorithm>
#include <cmath>

#include "kernels/quantise_scale.h"
#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {

void quantise(const QuantiseArgs& args) {
  const int64_t block = quantiser_block(args.quantiser);
  const bool is_fp8 = args.quantiser == Quantiser::kFp8Block32;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    for (int64_t first = 0; first < args.x.cols; first += block) {
      const auto x = args.x.row(t).subspan(first, block);
      const auto y = args.y.row(t).subspan(first, block);
      const float scale = block_scale(args.quantiser, x);
      for (int64_t i = 0; i < block; ++i) {
        const float v = x[i] / scale;
        // E2M1 has no NaN: it goes through, so that the finite check meets it.
        const float grid = std::isnan(v) ? v
                           : is_fp8      ? e4m3_to_f32(f32_to_e4m3(v))
                                         : e2m1_to_f32(f32_to_e2m1(v));
        y[i] = grid * scale;
      }
    }
  }
}

}  // namespace fathom::kernels::ref
