// exp, log1p and sigmoid on sixteen lanes: the one implementation that every cpu kernel uses, with
// the same bits on every ISA. Errors measured in tests/kernels/cpu/math16_test.cc.
#pragma once

#include "kernels/cpu/vec16.h"

namespace fathom::kernels::FATHOM_ISA {

// e^x, within 1.5 ulp, subnormal results included; above 88.72 infinity, below -104 zero; NaN
// stays.
FATHOM_INLINE F16 exp_of(F16 x) {
  // The bound comes first in max_of and min_of, so that a NaN in x wins.
  x = min_of(splat(89.0f), max_of(splat(-104.0f), x));
  const I16 n = round_to_int(x * splat(1.44269504f));
  const F16 count = to_float(n);
  F16 r = x - count * splat(0.693359375f);  // exact: the constant has 10 bits
  r = r + count * splat(2.12194440e-4f);    // the rest of ln 2
  // e^r on |r| <= ln(2)/2 (coefficients of Cephes expf).
  F16 p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = (p * (r * r) + r) + splat(1.0f);
  // Two factors, since 2^n alone may leave the range that p · 2^n stays in.
  const I16 half = sar<1>(n);
  const F16 scale_a = float_of(shl<23>(half + splat_int(127)));
  const F16 scale_b = float_of(shl<23>(n - half + splat_int(127)));
  return p * scale_a * scale_b;
}

FATHOM_INLINE F16 sigmoid_of(F16 x) {
  return splat(1.0f) / (splat(1.0f) + exp_of(splat(0.0f) - x));
}

// log(1 + x) for x >= 0, within 3 ulp.
FATHOM_INLINE F16 log1p_of(F16 x) {
  const F16 one = splat(1.0f);
  const F16 u = one + x;
  // What the rounding of 1 + x lost, to first order back through the derivative 1/u.
  const F16 lost = select(less(x, one), x - (u - one), one - (u - x)) / u;
  // u = 2^e · m, m in [sqrt(1/2), sqrt(2))
  const I16 shifted = bits_of(u) - splat_int(0x3f3504f3);
  const F16 e = to_float(sar<23>(shifted));
  const F16 m = float_of((shifted & splat_int(0x007fffff)) + splat_int(0x3f3504f3));
  const F16 f = m - one;
  F16 p = splat(7.0376836292e-2f);  // coefficients of Cephes logf
  p = p * f + splat(-1.1514610310e-1f);
  p = p * f + splat(1.1676998740e-1f);
  p = p * f + splat(-1.2420140846e-1f);
  p = p * f + splat(1.4249322787e-1f);
  p = p * f + splat(-1.6668057665e-1f);
  p = p * f + splat(2.0000714765e-1f);
  p = p * f + splat(-2.4999993993e-1f);
  p = p * f + splat(3.3333331174e-1f);
  const F16 f2 = f * f;
  F16 tail = p * f * f2;
  tail = tail - e * splat(2.12194440e-4f);
  tail = tail - f2 * splat(0.5f);
  const F16 log_u = (f + tail) + e * splat(0.693359375f);
  return log_u + lost;
}

}  // namespace fathom::kernels::FATHOM_ISA
