// The halving sum of dot_order.h for 16 vectors at once. For AVX-512 sources; static, as they are
// built with different flags.
#pragma once

#include <immintrin.h>

namespace fathom::kernels::cpu {

// Four rounds that each add the halves of two vectors' remaining lanes: lane i of the result is the
// sum of v[i].
static inline __attribute__((always_inline)) __m512 sum_lanes_of_16(const __m512* v) {
  __m512 eight[8];  // two vectors of 8 lanes in a register
  __m512 four[4];
  __m512 two[2];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                             _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(eight[2 * i], eight[2 * i + 1], 0x88),
                            _mm512_shuffle_f32x4(eight[2 * i], eight[2 * i + 1], 0xdd));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    two[i] = _mm512_add_ps(_mm512_shuffle_ps(four[2 * i], four[2 * i + 1], 0x44),
                           _mm512_shuffle_ps(four[2 * i], four[2 * i + 1], 0xee));
  const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88),
                                    _mm512_shuffle_ps(two[0], two[1], 0xdd));
  // Lane 4c + p now holds vector 4p + c.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_ps(order, sums);
}

}  // namespace fathom::kernels::cpu
