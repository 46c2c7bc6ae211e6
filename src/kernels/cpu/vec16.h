// Sixteen f32 lanes, the one vector that the cpu kernels are written in: one AVX-512 register, two
// of AVX2, an array elsewhere. Every operation here gives the same bits on all three, so a kernel
// written with it does as well. There is no fma: without the instruction it is a slow library call.
//
// Rules of files below kernels/cpu: they are compiled once per ISA into namespace FATHOM_ISA and
// include only headers of this folder, <cstdint>, <cstddef> and intrinsics; all helpers are static
// and forced inline. An inline function from elsewhere, compiled here for AVX-512, could be the
// copy that the linker keeps for every caller.
#pragma once

#include <cstddef>
#include <cstdint>

#define FATHOM_INLINE static inline __attribute__((always_inline))
#define FATHOM_INLINE_MEMBER inline __attribute__((always_inline))

#if FATHOM_ISA_BITS == 512
#include "kernels/cpu/vec16_avx512.h"
#elif FATHOM_ISA_BITS == 256
#include "kernels/cpu/vec16_avx2.h"
#else
#include "kernels/cpu/vec16_portable.h"
#endif

namespace fathom::kernels::FATHOM_ISA {

// ---- what the ISA files define -------------------------------------------------------------
// F16: 16 floats. load, load_part (lanes >= n are 0), store, store_part, splat, + - * /,
//   max_of (a > b ? a : b), min_of (a < b ? a : b), sqrt_of, swap_pairs (lanes 1 0 3 2 …),
//   zip_low, zip_high (a0 b0 a1 b1 … of the first or last eight lanes of each),
//   sum_of (fixed tree: l + (l+8), then 4, 2, 1), load_bf16, load_bf16_part, store_bf16_bits.
// I16: 16 int32. splat_int, + - & |, shl<n>, shr<n> (logical), sar<n>, bits_of(F16),
//   float_of(I16) (same bits), to_float(I16), round_to_int(F16) (nearest even).
// M16: lane mask. less(a, b), equal_int(a, b), select(mask, a, b) = mask ? a : b.
// Sum16: 16 double sums: add_square(F16), add_product(F16, F16), total() (same tree).

FATHOM_INLINE F16 abs_of(F16 x) {
  return float_of(bits_of(x) & splat_int(0x7fffffff));
}

// |magnitude| with the sign bit of `sign`.
FATHOM_INLINE F16 copy_sign(F16 magnitude, F16 sign) {
  return float_of((bits_of(magnitude) & splat_int(0x7fffffff)) |
                  (bits_of(sign) & splat_int(static_cast<int32_t>(0x80000000u))));
}

// Nearest bf16, ties to even; infinities stay, NaN stays NaN (its low bits are kept out of the
// carry).
FATHOM_INLINE F16 round_bf16(F16 x) {
  const I16 bits = bits_of(x);
  const I16 odd = shr<16>(bits) & splat_int(1);
  const I16 rounded =
      (bits + splat_int(0x7fff) + odd) & splat_int(static_cast<int32_t>(0xffff0000u));
  return select(less(abs_of(x), splat(__builtin_inff())), float_of(rounded), x);
}

FATHOM_INLINE F16 rounded_if(F16 x, bool round) {
  return round ? round_bf16(x) : x;
}

FATHOM_INLINE float max_across(F16 x) {
  float lanes[16];
  store(lanes, x);
  float best = lanes[0];
  for (int i = 1; i < 16; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

// rows[i] lane j becomes rows[j] lane i: four rounds of zipping each row with the one eight
// further.
FATHOM_INLINE void transpose(F16 (&rows)[16]) {
  for (int round = 0; round < 4; ++round) {
    F16 zipped[16];
    for (int i = 0; i < 8; ++i) {
      zipped[2 * i] = zip_low(rows[i], rows[i + 8]);
      zipped[2 * i + 1] = zip_high(rows[i], rows[i + 8]);
    }
    for (int i = 0; i < 16; ++i) rows[i] = zipped[i];
  }
}

// The first n of 16 lanes, n in 1..16: whole vectors go the fast way.
FATHOM_INLINE F16 load_some(const float* from, int64_t n) {
  return n >= 16 ? load(from) : load_part(from, n);
}
FATHOM_INLINE F16 load_bf16_some(const uint16_t* from, int64_t n) {
  return n >= 16 ? load_bf16(from) : load_bf16_part(from, n);
}
FATHOM_INLINE void store_some(float* to, F16 x, int64_t n) {
  if (n >= 16) {
    store(to, x);
  } else {
    store_part(to, x, n);
  }
}

}  // namespace fathom::kernels::FATHOM_ISA
