#include "kernels/cpu/lanes/hyper_connection.h"

#include "kernels/cpu/math16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

constexpr int64_t kStreamsMax = 8;
constexpr int64_t kDotsAtOnce = 8;  // chains of additions that hide one another's latency

FATHOM_INLINE float sigmoid_one(float x) {
  float lanes[16];
  store(lanes, sigmoid_of(splat(x)));
  return lanes[0];
}

// Each column is divided by its sum; the last step of every iteration.
FATHOM_INLINE void normalise_columns(float* c, int64_t streams, float eps) {
  for (int64_t k = 0; k < streams; ++k) {
    float sum = c[k];
    for (int64_t j = 1; j < streams; ++j) sum += c[j * streams + k];
    for (int64_t j = 0; j < streams; ++j) c[j * streams + k] /= sum + eps;
  }
}

FATHOM_INLINE void normalise_rows(float* c, int64_t streams, float eps) {
  for (int64_t j = 0; j < streams; ++j) {
    float* row = c + j * streams;
    float sum = row[0];
    for (int64_t k = 1; k < streams; ++k) sum += row[k];
    for (int64_t k = 0; k < streams; ++k) row[k] /= sum + eps;
  }
}

FATHOM_INLINE void softmax_row(float* row, int64_t streams, float eps) {
  float best = row[0];
  for (int64_t k = 1; k < streams; ++k) best = row[k] > best ? row[k] : best;
  store_part(row, exp_of(load_part(row, streams) - splat(best)), streams);
  float sum = row[0];
  for (int64_t k = 1; k < streams; ++k) sum += row[k];
  for (int64_t k = 0; k < streams; ++k) row[k] = row[k] / sum + eps;
}

// `count` dots at once, so that x is loaded once for all of them. A lane adds up to eight products
// in f32 before they go to its double: 2^-24 of a short sum is less than what f32 outputs show, and
// four times faster than widening every product.
template <int64_t count>
FATHOM_INLINE void add_some_dots(const float* x, const float* w, int64_t stride, int64_t n,
                                 double* dots) {
  constexpr int64_t kRun = 8 * 16;
  Sum16 sums[count];
  for (int64_t first = 0; first < n; first += kRun) {
    const int64_t end = first + kRun < n ? first + kRun : n;
    F16 run[count];
    for (int64_t i = 0; i < count; ++i) run[i] = splat(0.0f);
    int64_t k = first;
    for (; k + 16 <= end; k += 16) {
      const F16 value = load(x + k);
      for (int64_t i = 0; i < count; ++i) run[i] = run[i] + value * load(w + i * stride + k);
    }
    if (k < end) {
      const F16 value = load_part(x + k, end - k);
      for (int64_t i = 0; i < count; ++i)
        run[i] = run[i] + value * load_part(w + i * stride + k, end - k);
    }
    for (int64_t i = 0; i < count; ++i) sums[i].add_product(run[i], splat(1.0f));
  }
  for (int64_t i = 0; i < count; ++i) dots[i] += sums[i].total();
}

}  // namespace

void add_dots(const float* x, const float* w, int64_t stride, int64_t count, int64_t n,
              double* dots) {
  int64_t first = 0;
  for (; first + kDotsAtOnce <= count; first += kDotsAtOnce)
    add_some_dots<kDotsAtOnce>(x, w + first * stride, stride, n, dots + first);
  for (; first < count; ++first) add_some_dots<1>(x, w + first * stride, stride, n, dots + first);
}

double sum_of_squares(const float* x, int64_t n) {
  Sum16 sum;
  for (int64_t k = 0; k < n; k += 16) sum.add_square(load_some(x + k, n - k));
  return sum.total();
}

void hc_coefficients_row(const cpu::HcCoefficientsRow& row) {
  const int64_t streams = row.streams;
  const float* m = row.m;
  for (int64_t s = 0; s < streams; ++s) {
    row.pre[s] = sigmoid_one(m[s] * row.scale[0] + row.base[s]) + row.eps;
    const int64_t p = streams + s;
    row.post[s] = 2.0f * sigmoid_one(m[p] * row.scale[1] + row.base[p]);
  }
  float c[kStreamsMax * kStreamsMax];
  for (int64_t i = 0; i < streams * streams; ++i)
    c[i] = m[2 * streams + i] * row.scale[2] + row.base[2 * streams + i];
  for (int64_t j = 0; j < streams; ++j) softmax_row(c + j * streams, streams, row.eps);
  normalise_columns(c, streams, row.eps);
  for (int iteration = 1; iteration < row.sinkhorn_iterations; ++iteration) {
    normalise_rows(c, streams, row.eps);
    normalise_columns(c, streams, row.eps);
  }
  for (int64_t i = 0; i < streams * streams; ++i) row.comb[i] = c[i];
}

void hc_collapse_row(const float* x, const float* pre, int64_t streams, float* y, int64_t n,
                     bool round) {
  for (int64_t d = 0; d < n; d += 16) {
    F16 sum = splat(pre[0]) * load_some(x + d, n - d);
    for (int64_t s = 1; s < streams; ++s)
      sum = sum + splat(pre[s]) * load_some(x + s * n + d, n - d);
    store_some(y + d, rounded_if(sum, round), n - d);
  }
}

void hc_expand_row(const float* y, const float* x, const float* post, const float* comb,
                   int64_t streams, float* out, int64_t n, bool round) {
  for (int64_t d = 0; d < n; d += 16) {
    F16 in[kStreamsMax];
    for (int64_t j = 0; j < streams; ++j) in[j] = load_some(x + j * n + d, n - d);
    const F16 from_site = load_some(y + d, n - d);
    for (int64_t k = 0; k < streams; ++k) {
      F16 sum = splat(comb[k]) * in[0];
      for (int64_t j = 1; j < streams; ++j) sum = sum + splat(comb[j * streams + k]) * in[j];
      const F16 value = splat(post[k]) * from_site + sum;
      store_some(out + k * n + d, rounded_if(value, round), n - d);
    }
  }
}

void hc_mean_row(const float* x, int64_t streams, float* y, int64_t n, bool round) {
  const F16 count = splat(static_cast<float>(streams));
  for (int64_t d = 0; d < n; d += 16) {
    F16 sum = load_some(x + d, n - d);
    for (int64_t s = 1; s < streams; ++s) sum = sum + load_some(x + s * n + d, n - d);
    store_some(y + d, rounded_if(sum / count, round), n - d);
  }
}

}  // namespace fathom::kernels::FATHOM_ISA
