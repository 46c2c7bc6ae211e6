#include "kernels/cpu/lanes/rope.h"

#include "kernels/cpu/vec16.h"

namespace fathom::kernels::FATHOM_ISA {

void rope_adjacent_row(float* x, int64_t heads, int64_t head_dim, const float* cosine,
                       const float* sine, int64_t rotary, bool round) {
  for (int64_t head = 0; head < heads; ++head) {
    float* pairs = x + head * head_dim + head_dim - rotary;
    for (int64_t c = 0; c < rotary; c += 16) {
      const F16 value = load_some(pairs + c, rotary - c);
      const F16 turned = value * load_some(cosine + c, rotary - c) +
                         swap_pairs(value) * load_some(sine + c, rotary - c);
      store_some(pairs + c, rounded_if(turned, round), rotary - c);
    }
  }
}

void rope_half_split_row(float* x, int64_t heads, int64_t head_dim, const float* cosine,
                         const float* sine, int64_t rotary, bool round) {
  const int64_t half = rotary / 2;
  for (int64_t head = 0; head < heads; ++head) {
    float* low = x + head * head_dim + head_dim - rotary;
    float* high = low + half;
    for (int64_t c = 0; c < half; c += 16) {
      const F16 a = load_some(low + c, half - c);
      const F16 b = load_some(high + c, half - c);
      const F16 cosines = load_some(cosine + c, half - c);
      const F16 sines = load_some(sine + c, half - c);
      store_some(low + c, rounded_if(a * cosines - b * sines, round), half - c);
      store_some(high + c, rounded_if(a * sines + b * cosines, round), half - c);
    }
  }
}

}  // namespace fathom::kernels::FATHOM_ISA
