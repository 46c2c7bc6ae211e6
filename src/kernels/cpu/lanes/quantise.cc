#include "kernels/cpu/lanes/quantise.h"

#include "kernels/cpu/vec16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

// f32(1/448) and f32(1/6), as the model multiplies by them.
FATHOM_INLINE F16 inverse_448() {
  return float_of(splat_int(0x3b124925));
}
FATHOM_INLINE F16 inverse_6() {
  return float_of(splat_int(0x3e2aaaab));
}

// The smallest power of two >= x, for positive normal x.
FATHOM_INLINE F16 power_of_two_ceil(F16 x) {
  const I16 up = bits_of(x) + splat_int(0x7fffff);  // carries into the exponent unless x is one
  return float_of(up & splat_int(0x7f800000));
}

// Nearest multiple of `step` by adding and taking away a number whose last place is `step`; exact
// ties go to the even multiple. 0 <= x < 2^22 · step.
FATHOM_INLINE F16 nearest_multiple(F16 x, float step) {
  const F16 magic = splat(step * 12582912.0f);  // 1.5 · 2^23 steps
  return (x + magic) - magic;
}

// x in [-448, 448] to the E4M3 grid; the sign of zero is kept.
FATHOM_INLINE F16 to_e4m3(F16 x) {
  const F16 magnitude = abs_of(x);
  const I16 bits = bits_of(magnitude);
  const I16 odd = shr<20>(bits) & splat_int(1);
  const I16 kept = (bits + splat_int(0x7ffff) + odd) & splat_int(~0xfffff);  // 3 mantissa bits
  const F16 subnormal = nearest_multiple(magnitude, 0x1p-9f);
  return copy_sign(select(less(magnitude, splat(0x1p-6f)), subnormal, float_of(kept)), x);
}

// x in [-6, 6] to the E2M1 grid: steps of 1/2 below 2, 1 below 4, 2 above.
FATHOM_INLINE F16 to_e2m1(F16 x) {
  const F16 magnitude = abs_of(x);
  const F16 low = nearest_multiple(magnitude, 0.5f);
  const F16 middle = nearest_multiple(magnitude, 1.0f);
  const F16 high = nearest_multiple(magnitude, 2.0f);
  const F16 upper = select(less(magnitude, splat(4.0f)), middle, high);
  return copy_sign(select(less(magnitude, splat(2.0f)), low, upper), x);
}

FATHOM_INLINE F16 clamp(F16 x, float bound) {
  return max_of(splat(-bound), min_of(splat(bound), x));
}

}  // namespace

void fp8_block32_row(const float* x, float* y, int64_t n) {
  for (int64_t c = 0; c < n; c += 32) {
    const F16 a = load(x + c);
    const F16 b = load(x + c + 16);
    const float largest = max_across(max_of(abs_of(a), abs_of(b)));
    const F16 scale = power_of_two_ceil(max_of(splat(1e-4f), splat(largest)) * inverse_448());
    store(y + c, to_e4m3(clamp(a / scale, 448.0f)) * scale);
    store(y + c + 16, to_e4m3(clamp(b / scale, 448.0f)) * scale);
  }
}

void fp4_block32_row(const float* x, float* y, int64_t n) {
  const F16 floor = splat(6.0f * 0x1p-126f);
  for (int64_t c = 0; c < n; c += 32) {
    const F16 a = load(x + c);
    const F16 b = load(x + c + 16);
    const float largest = max_across(max_of(abs_of(a), abs_of(b)));
    const F16 scale = power_of_two_ceil(max_of(floor, splat(largest)) * inverse_6());
    store(y + c, to_e2m1(clamp(a / scale, 6.0f)) * scale);
    store(y + c + 16, to_e2m1(clamp(b / scale, 6.0f)) * scale);
  }
}

void fp4_block16_row(const float* x, float* y, int64_t n) {
  const F16 floor = splat(6.0f * 0x1p-9f);
  for (int64_t c = 0; c < n; c += 16) {
    const F16 a = load(x + c);
    const F16 largest = max_of(floor, splat(max_across(abs_of(a))));
    const F16 scale = to_e4m3(min_of(splat(448.0f), largest / splat(6.0f)));
    store(y + c, to_e2m1(clamp(a / scale, 6.0f)) * scale);
  }
}

}  // namespace fathom::kernels::FATHOM_ISA
