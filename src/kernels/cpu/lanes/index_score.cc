#include "kernels/cpu/lanes/index_score.h"

#include "kernels/cpu/vec16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

constexpr int64_t kHeadsAtOnce = 8;  // chains of additions that hide one another's latency

// dots[i] = q_i · key for `count` heads; a key channel is loaded once for all of them.
template <int64_t count>
FATHOM_INLINE void head_dots(const float* q, const float* keys_t, int64_t dim, F16* dots) {
  for (int64_t i = 0; i < count; ++i) dots[i] = splat(0.0f);
  for (int64_t d = 0; d < dim; ++d) {
    const F16 key = load(keys_t + d * 16);
    for (int64_t i = 0; i < count; ++i) dots[i] = dots[i] + splat(q[i * dim + d]) * key;
  }
}

// load_at(key, first, n) gives channels first … first + n - 1 of one key.
template <typename Load>
FATHOM_INLINE void transpose_keys(int64_t count, int64_t dim, float* keys_t, const Load& load_at) {
  for (int64_t d = 0; d < dim; d += 16) {
    F16 rows[16];
    for (int64_t key = 0; key < 16; ++key)
      rows[key] = key < count ? load_at(key, d, dim - d) : splat(0.0f);
    transpose(rows);
    for (int64_t i = 0; i < 16 && d + i < dim; ++i) store(keys_t + (d + i) * 16, rows[i]);
  }
}

}  // namespace

void transpose_keys_f32(const float* keys, int64_t stride, int64_t count, int64_t dim,
                        float* keys_t) {
  transpose_keys(count, dim, keys_t, [&](int64_t key, int64_t first, int64_t n) {
    return load_some(keys + key * stride + first, n);
  });
}

void transpose_keys_bf16(const uint16_t* keys, int64_t stride, int64_t count, int64_t dim,
                         float* keys_t) {
  transpose_keys(count, dim, keys_t, [&](int64_t key, int64_t first, int64_t n) {
    return load_bf16_some(keys + key * stride + first, n);
  });
}

void index_score_keys(const float* q, const float* weight, const float* keys_t, int64_t heads,
                      int64_t dim, float* score) {
  F16 sum = splat(0.0f);
  F16 dots[kHeadsAtOnce];
  int64_t h = 0;
  for (; h + kHeadsAtOnce <= heads; h += kHeadsAtOnce) {
    head_dots<kHeadsAtOnce>(q + h * dim, keys_t, dim, dots);
    for (int64_t i = 0; i < kHeadsAtOnce; ++i)
      sum = sum + splat(weight[h + i]) * max_of(dots[i], splat(0.0f));
  }
  for (; h < heads; ++h) {
    head_dots<1>(q + h * dim, keys_t, dim, dots);
    sum = sum + splat(weight[h]) * max_of(dots[0], splat(0.0f));
  }
  store(score, sum);
}

}  // namespace fathom::kernels::FATHOM_ISA
