#include "kernels/cpu/lanes/norm.h"

#include "kernels/cpu/math16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

// 1 / sqrt(mean + eps) with the roundings of §2.2: mean to f32, eps added in f32, result to f32.
FATHOM_INLINE float inverse_rms(double sum_sq, int64_t n, float eps) {
  const float variance = static_cast<float>(sum_sq / static_cast<double>(n)) + eps;
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(variance)));
}

}  // namespace

void rms_norm_row(const float* x, const float* weight, float* y, int64_t n, float eps, bool round) {
  Sum16 sum_sq;
  for (int64_t c = 0; c < n; c += 16) sum_sq.add_square(load_some(x + c, n - c));
  const F16 scale = splat(inverse_rms(sum_sq.total(), n, eps));
  for (int64_t c = 0; c < n; c += 16) {
    const F16 value = load_some(weight + c, n - c) * (load_some(x + c, n - c) * scale);
    store_some(y + c, rounded_if(value, round), n - c);
  }
}

float engram_gate_stream(const float* x, const float* key, const float* weight_q,
                         const float* weight_k, int64_t n, float eps) {
  Sum16 dot;
  Sum16 x_sq;
  Sum16 key_sq;
  for (int64_t c = 0; c < n; c += 16) {
    const F16 a = load_some(x + c, n - c);
    const F16 b = load_some(key + c, n - c);
    const F16 weight = load_some(weight_q + c, n - c) * load_some(weight_k + c, n - c);
    dot.add_product(a * b, weight);
    x_sq.add_square(a);
    key_sq.add_square(b);
  }
  const float norm = inverse_rms(x_sq.total(), n, eps) * inverse_rms(key_sq.total(), n, eps);
  const float width = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(n)));
  const F16 similarity = splat(static_cast<float>(dot.total()) * norm * width);
  const F16 root = sqrt_of(max_of(splat(1e-6f), abs_of(similarity)));
  float lanes[16];
  store(lanes, sigmoid_of(copy_sign(root, similarity)));
  return lanes[0];
}

void engram_inject_row(float* x, const float* value, float gate, int64_t n, bool round) {
  for (int64_t c = 0; c < n; c += 16) {
    const F16 sum = load_some(x + c, n - c) + splat(gate) * load_some(value + c, n - c);
    store_some(x + c, rounded_if(sum, round), n - c);
  }
}

}  // namespace fathom::kernels::FATHOM_ISA
