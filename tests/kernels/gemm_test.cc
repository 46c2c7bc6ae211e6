// Topic: every set of kernels of `linear` gives the same bits, near the exact sum, whatever the
// batch and the threads; scales and magnitudes at the ends of their ranges included.
#include "kernels/cpu/gemm.h"

#include <cstring>

#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

struct NamedKernels {
  const char* name;
  const cpu::GemmKernels* kernels;
};

std::vector<NamedKernels> kernels_of_this_machine() {
  std::vector<NamedKernels> all = {{"portable", &cpu::gemm_kernels_portable()}};
#if defined(__x86_64__)
  for (Isa isa : available_isas()) {
    if (isa == Isa::kAvx2) all.push_back({"avx2", &cpu::gemm_kernels_avx2()});
    if (isa == Isa::kAvx512) all.push_back({"avx512", &cpu::gemm_kernels_avx512()});
  }
  if (cpu_has_avx512_bf16()) all.push_back({"avx512_bf16", &cpu::gemm_kernels_avx512_bf16()});
#endif
  return all;
}

enum class Scales { kUsual, kAny };  // around 2^-6; or 2^-127 .. 2^108
enum class XValues { kBf16, kTiny, kF32 };

struct Weight {
  WeightView view;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
};

Weight random_weight(DType dtype, int64_t rows, int64_t cols, Scales kind, uint32_t seed) {
  std::mt19937 random(seed);
  Weight weight;
  const int64_t row_bytes = dtype == DType::kI8 ? cols / 2 : cols * dtype_bytes(dtype);
  weight.codes.resize(static_cast<size_t>(rows * row_bytes));
  if (dtype == DType::kF32 || dtype == DType::kBF16) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * cols; ++i) {
      const float value = normal(random) * (kind == Scales::kAny && i % 7 == 0 ? 1e-38f : 1.0f);
      const uint16_t bf16 = f32_to_bf16(value);
      const int64_t bytes = dtype_bytes(dtype);
      std::memcpy(weight.codes.data() + i * bytes,
                  dtype == DType::kF32 ? static_cast<const void*>(&value) : &bf16,
                  static_cast<size_t>(bytes));
    }
  } else {
    for (uint8_t& code : weight.codes) {
      code = static_cast<uint8_t>(random());
      if (dtype == DType::kF8E4M3 && (code & 0x7f) == 0x7f) code = 0;  // NaN
    }
    weight.scales.resize(static_cast<size_t>((rows + 31) / 32 * 32 * ((cols + 31) / 32)));
    for (uint8_t& scale : weight.scales)
      scale = static_cast<uint8_t>(kind == Scales::kUsual ? 118 + random() % 6 : random() % 236);
  }
  weight.view = {dtype, rows, cols, weight.codes.data(),
                 weight.scales.empty() ? nullptr : weight.scales.data()};
  return weight;
}

Matrix<float> random_x(int64_t rows, int64_t cols, XValues values, uint32_t seed) {
  Matrix<float> x =
      random_matrix(rows, cols, seed, values == XValues::kF32 ? Values::kF32 : Values::kBf16, 1, 3);
  if (values == XValues::kTiny)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = r % 5; c < cols; c += 5) x.row(r)[c] = round_to_bf16(x.row(r)[c] * 1e-30f);
  return x;
}

std::vector<float> run(const cpu::GemmKernels& kernels, MatrixView<const float> x,
                       const Weight& weight, const std::vector<float>& bias, int threads = 1,
                       bool round_bf16 = false) {
  ThreadPool pool(threads);
  Workspace workspace;
  Matrix<float> y(x.rows, weight.view.rows, 5);
  cpu::linear_with(kernels, {pool, workspace, Isa::kPortable},
                   {.x = x,
                    .weight = weight.view,
                    .bias = bias.empty() ? nullptr : bias.data(),
                    .y = y,
                    .round_bf16 = round_bf16});
  std::vector<float> out;
  append<float>(out, y);
  return out;
}

struct Shape {
  int64_t n, k;
};
// Ragged strips of 4 and 16 rows; one step, a ragged block of 1024, FP4 groups cut short.
constexpr Shape kShapes[] = {{5, 32}, {33, 1056}, {17, 64}, {8, 1088}, {1, 4096}, {40, 2080}};
constexpr DType kDTypes[] = {DType::kBF16, DType::kF32, DType::kF8E4M3, DType::kI8};

// Calls body(x, weight, bias, name) for every dtype, shape and kind of values.
template <typename Body>
void for_each_case(int64_t rows, const Body& body) {
  for (DType dtype : kDTypes) {
    for (Shape shape : kShapes) {
      for (Scales scales : {Scales::kUsual, Scales::kAny}) {
        for (XValues values : {XValues::kBf16, XValues::kTiny, XValues::kF32}) {
          // Plain types may have any K.
          const bool is_plain = dtype == DType::kBF16 || dtype == DType::kF32;
          const int64_t k = shape.k + (is_plain && scales == Scales::kAny ? 5 : 0);
          const Weight weight = random_weight(dtype, shape.n, k, scales, 1);
          Matrix<float> x = random_x(rows, k, values, 2);
          const std::vector<float> bias =
              values == XValues::kBf16 ? std::vector<float>() : random_vector(shape.n, 3);
          body(x, weight, bias,
               fmt::format("{} [{}, {}] scales {} values {}", dtype_name(dtype), shape.n, k,
                           static_cast<int>(scales), static_cast<int>(values)));
        }
      }
    }
  }
}

TEST(Gemm, EverySetOfKernelsGivesTheSameBits) {
  for_each_case(13, [](Matrix<float>& x, const Weight& weight, const std::vector<float>& bias,
                       const std::string& name) {
    const std::vector<float> want = run(cpu::gemm_kernels_portable(), x, weight, bias);
    for (const NamedKernels& set : kernels_of_this_machine())
      expect_same_bits(run(*set.kernels, x, weight, bias), want, name + " on " + set.name);
  });
}

TEST(Gemm, ARowAloneEqualsThatRowInABatch) {
  for_each_case(11, [](Matrix<float>& x, const Weight& weight, const std::vector<float>& bias,
                       const std::string& name) {
    const size_t n = static_cast<size_t>(weight.view.rows);
    for (const NamedKernels& set : kernels_of_this_machine()) {
      const std::vector<float> batch = run(*set.kernels, x, weight, bias);
      for (int64_t r : {0, 4, 10}) {
        const std::vector<float> want(batch.begin() + r * weight.view.rows,
                                      batch.begin() + (r + 1) * weight.view.rows);
        const MatrixView<const float> row(x.row(r), 1, x.cols, x.stride);
        expect_same_bits(run(*set.kernels, row, weight, bias), want, name + " on " + set.name);
      }
      ASSERT_EQ(batch.size(), n * 11);
    }
  });
}

TEST(Gemm, ThreadsAndPassesDoNotChangeBits) {
  // 301 rows take two passes over the weight.
  for (DType dtype : kDTypes) {
    const Weight weight = random_weight(dtype, 70, 160, Scales::kUsual, 1);
    Matrix<float> x = random_x(301, 160, XValues::kBf16, 2);
    for (const NamedKernels& set : kernels_of_this_machine()) {
      const std::vector<float> want = run(*set.kernels, x, weight, {}, 1, true);
      for (int threads : {2, 3})
        expect_same_bits(run(*set.kernels, x, weight, {}, threads, true), want, set.name);
      const MatrixView<const float> first(x.row(0), 7, x.cols, x.stride);
      const std::vector<float> few = run(*set.kernels, first, weight, {}, 1, true);
      expect_same_bits(few, {want.begin(), want.begin() + 7 * 70}, set.name);
    }
  }
}

// One row takes the weights' own way, 8 still share a job, 9 do not.
TEST(Gemm, ProductsTogetherEqualEachAlone) {
  for (Isa isa : available_isas()) {
    if (isa == Isa::kRef) continue;
    for (int64_t rows : {1, 8, 9}) {
      Matrix<float> x = random_x(rows, 160, XValues::kBf16, 2);
      Matrix<float> wider = random_x(rows, 96, XValues::kF32, 3);
      std::vector<Weight> weights;
      for (DType dtype : kDTypes) weights.push_back(random_weight(dtype, 70, 160, Scales::kAny, 4));
      weights.push_back(random_weight(DType::kBF16, 3, 96, Scales::kUsual, 5));
      std::vector<Matrix<float>> y;
      std::vector<LinearArgs> products;
      for (const Weight& weight : weights) y.emplace_back(rows, weight.view.rows, 3);
      for (size_t i = 0; i < weights.size(); ++i)
        products.push_back({.x = weights[i].view.cols == 96 ? wider : x,
                            .weight = weights[i].view,
                            .y = y[i],
                            .quantise_activations = i == 2,
                            .round_bf16 = i % 2 == 0});
      ThreadPool pool(2);
      Workspace workspace;
      const Context context{pool, workspace, isa};
      cpu::linear_together(context, products);
      for (size_t i = 0; i < products.size(); ++i) {
        Matrix<float> alone(rows, weights[i].view.rows, 3);
        LinearArgs args = products[i];
        args.y = alone;
        cpu::linear(context, args);
        std::vector<float> got;
        std::vector<float> want;
        append<float>(got, y[i]);
        append<float>(want, alone);
        expect_same_bits(got, want, fmt::format("{} rows, {}", rows, i));
      }
    }
  }
}

double value_at(const WeightView& w, int64_t n, int64_t k) {
  const int64_t at = n * w.cols + k;
  const int64_t scale_row = w.dtype == DType::kF8E4M3 ? n / 32 : n;
  const double scale =
      w.scales ? e8m0_to_f32(w.scales[scale_row * ((w.cols + 31) / 32) + k / 32]) : 1;
  const auto* bytes = static_cast<const uint8_t*>(w.data);
  switch (w.dtype) {
    case DType::kF32:
      return static_cast<const float*>(w.data)[at];
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(w.data)[at]);
    case DType::kF8E4M3:
      return e4m3_to_f32(bytes[at]) * scale;
    default:
      return e2m1_to_f32(k % 2 == 0 ? bytes[at / 2] & 15 : bytes[at / 2] >> 4) * scale;
  }
}

// Each of the K/16 adds of a lane, the multiplications before them, the 4 adds of the tree, one a
// block and the bias round once: at most K/16 + 6 roundings meet a product, 2^-24 each, of
// partial sums no larger than the sum of magnitudes. Below the subnormal range: an absolute step.
TEST(Gemm, StaysNearTheExactSum) {
  for_each_case(3, [](Matrix<float>& x, const Weight& weight, const std::vector<float>& bias,
                      const std::string& name) {
    const int64_t n = weight.view.rows;
    const int64_t k = weight.view.cols;
    for (const NamedKernels& set : kernels_of_this_machine()) {
      const std::vector<float> y = run(*set.kernels, x, weight, bias);
      for (int64_t r = 0; r < x.rows; ++r) {
        for (int64_t c = 0; c < n; ++c) {
          double sum = bias.empty() ? 0 : bias[static_cast<size_t>(c)];
          double magnitude = std::fabs(sum);
          for (int64_t i = 0; i < k; ++i) {
            const double product = double(x.row(r)[i]) * value_at(weight.view, c, i);
            sum += product;
            magnitude += std::fabs(product);
          }
          const double bound = (double(k) / 16 + 6) * 0x1p-24 * magnitude + double(k) * 0x1p-149;
          ASSERT_NEAR(y[static_cast<size_t>(r * n + c)], sum, bound) << name << " on " << set.name;
        }
      }
    }
  });
}

TEST(Gemm, RoundsOnceToTheNearestEvenBf16) {
  const Weight weight = random_weight(DType::kF8E4M3, 33, 96, Scales::kUsual, 1);
  Matrix<float> x = random_x(5, 96, XValues::kBf16, 2);
  for (const NamedKernels& set : kernels_of_this_machine()) {
    std::vector<float> want = run(*set.kernels, x, weight, {});
    for (float& value : want) value = round_to_bf16(value);
    expect_same_bits(run(*set.kernels, x, weight, {}, 1, true), want, set.name);
  }
}

}  // namespace
}  // namespace fathom::kernels
