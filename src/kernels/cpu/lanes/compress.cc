#include "kernels/cpu/lanes/compress.h"

#include "kernels/cpu/math16.h"

namespace fathom::kernels::FATHOM_ISA {

void pool_group(const float* k, int64_t stride_k, const float* g, int64_t stride_g, int64_t ratio,
                float* y, int64_t n, bool round) {
  for (int64_t c = 0; c < n; c += 16) {
    F16 best = load_some(g + c, n - c);
    for (int64_t i = 1; i < ratio; ++i) best = max_of(best, load_some(g + i * stride_g + c, n - c));
    F16 sum = splat(0.0f);
    for (int64_t i = 0; i < ratio; ++i)
      sum = sum + exp_of(load_some(g + i * stride_g + c, n - c) - best);
    F16 pooled = splat(0.0f);
    for (int64_t i = 0; i < ratio; ++i) {
      const F16 weight = exp_of(load_some(g + i * stride_g + c, n - c) - best) / sum;
      pooled = pooled + weight * load_some(k + i * stride_k + c, n - c);
    }
    store_some(y + c, rounded_if(pooled, round), n - c);
  }
}

}  // namespace fathom::kernels::FATHOM_ISA
