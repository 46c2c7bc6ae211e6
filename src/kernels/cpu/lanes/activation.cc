#include "kernels/cpu/lanes/activation.h"

#include "kernels/cpu/math16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

// max_of and min_of give their second operand for a NaN: it must reach the finite check.
FATHOM_INLINE F16 at_most(F16 x, F16 bound) {
  return min_of(bound, x);
}
FATHOM_INLINE F16 at_least(F16 x, F16 bound) {
  return max_of(bound, x);
}

}  // namespace

void sqrt_softplus_row(const float* x, float temperature, float* y, int64_t n) {
  const F16 limit = splat(20.0f);
  for (int64_t c = 0; c < n; c += 16) {
    const F16 t = load_some(x + c, n - c) / splat(temperature);
    const F16 softplus = select(less(limit, t), t, log1p_of(exp_of(at_most(t, limit))));
    store_some(y + c, sqrt_of(softplus), n - c);
  }
}

void sigmoid_row(const float* x, float temperature, float* y, int64_t n) {
  for (int64_t c = 0; c < n; c += 16)
    store_some(y + c, sigmoid_of(load_some(x + c, n - c) / splat(temperature)), n - c);
}

void softmax_row(const float* x, float temperature, float* y, int64_t n) {
  float best = x[0];
  for (int64_t c = 1; c < n; ++c) best = x[c] > best ? x[c] : best;
  const F16 divisor = splat(temperature);
  const F16 shift = splat(best) / divisor;
  float sum = 0;
  for (int64_t c = 0; c < n; c += 16) {
    store_some(y + c, exp_of(load_some(x + c, n - c) / divisor - shift), n - c);
    sum += sum_of(load_some(y + c, n - c));
  }
  for (int64_t c = 0; c < n; c += 16)
    store_some(y + c, load_some(y + c, n - c) / splat(sum), n - c);
}

void swiglu_row(const float* gate, const float* up, float weight, float limit, float* y, int64_t n,
                bool round) {
  for (int64_t c = 0; c < n; c += 16) {
    F16 g = load_some(gate + c, n - c);
    F16 u = load_some(up + c, n - c);
    if (limit > 0) {
      g = at_most(g, splat(limit));
      u = at_least(at_most(u, splat(limit)), splat(-limit));
    }
    const F16 value = splat(weight) * (g * sigmoid_of(g) * u);
    store_some(y + c, rounded_if(value, round), n - c);
  }
}

void silu_mul_row(const float* gate, const float* up, float* y, int64_t n, bool round) {
  for (int64_t c = 0; c < n; c += 16) {
    const F16 g = load_some(gate + c, n - c);
    const F16 silu = rounded_if(g * sigmoid_of(g), round);
    store_some(y + c, rounded_if(silu * load_some(up + c, n - c), round), n - c);
  }
}

void add_row(const float* a, const float* b, float* y, int64_t n, bool round) {
  for (int64_t c = 0; c < n; c += 16) {
    const F16 sum = load_some(a + c, n - c) + load_some(b + c, n - c);
    store_some(y + c, rounded_if(sum, round), n - c);
  }
}

bool is_finite_row(const float* x, int64_t n) {
  // x - x is 0 for a finite x and NaN otherwise, and a NaN stays in the sum.
  F16 sum = splat(0.0f);
  for (int64_t c = 0; c < n; c += 16) {
    const F16 value = load_some(x + c, n - c);
    sum = sum + (value - value);
  }
  return sum_of(sum) == 0.0f;
}

}  // namespace fathom::kernels::FATHOM_ISA
