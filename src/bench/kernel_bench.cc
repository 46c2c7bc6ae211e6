#include "bench/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "bench/timing.h"
#include "kernels/attention.h"
#include "kernels/linear.h"
#include "tensor/codec.h"

namespace fathom::bench {
namespace {

constexpr int kRepeats = 12;
constexpr double kGemvTarget = 0.75;
constexpr double kGemmTarget = 0.55;
constexpr double kAttentionTarget = 0.40;

struct Shape {
  int64_t rows;  // N
  int64_t cols;  // K
};

std::string dtype_label(DType dtype) {
  return dtype == DType::kI8 ? "fp4" : dtype == DType::kF8E4M3 ? "fp8" : "bf16";
}

// A weight of random codes with scales near 2^-6.
class RandomWeight {
 public:
  RandomWeight(DType dtype, Shape shape) {
    std::mt19937_64 random(1);
    const int64_t row_bytes =
        dtype == DType::kI8 ? shape.cols / 2 : shape.cols * dtype_bytes(dtype);
    codes_.resize(static_cast<size_t>(shape.rows * row_bytes / 8));
    // Codes without the NaN of E4M3; for bf16, magnitudes in [2^-7, 2).
    const bool is_bf16 = dtype == DType::kBF16;
    for (uint64_t& word : codes_)
      word = is_bf16 ? (random() & 0x83ff83ff83ff83ffULL) | 0x3c003c003c003c00ULL
                     : random() & 0xbfbfbfbfbfbfbfbfULL;
    bytes_ = shape.rows * row_bytes;
    view_ = {dtype, shape.rows, shape.cols, codes_.data(), nullptr};
    if (dtype == DType::kBF16) return;
    const int64_t scale_rows = dtype == DType::kI8 ? shape.rows : (shape.rows + 31) / 32;
    scales_.resize(static_cast<size_t>(scale_rows * shape.cols / 32));
    for (uint8_t& scale : scales_) scale = static_cast<uint8_t>(118 + random() % 6);
    view_.scales = scales_.data();
    bytes_ += static_cast<int64_t>(scales_.size());
  }

  const WeightView& view() const { return view_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<uint64_t> codes_;
  std::vector<uint8_t> scales_;
  WeightView view_;
  int64_t bytes_ = 0;
};

// Values that a bf16 holds exactly, as activations are in the reference policy.
std::vector<float> random_values(int64_t count) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = round_to_bf16(normal(random));
  return values;
}

double linear_seconds(const kernels::Context& context, const WeightView& weight, int64_t rows) {
  std::vector<float> x = random_values(rows * weight.cols);
  std::vector<float> y(static_cast<size_t>(rows * weight.rows));
  return best_seconds(kRepeats, [&] {
    kernels::linear(context, {.x = {x.data(), rows, weight.cols},
                              .weight = weight,
                              .y = {y.data(), rows, weight.rows},
                              .round_bf16 = true});
  });
}

}  // namespace

std::vector<Figure> bench_gemv(const kernels::Context& context, const Ceilings& ceilings) {
  std::vector<Figure> figures;
  for (DType dtype : {DType::kF8E4M3, DType::kI8, DType::kBF16}) {
    // 168 MB each.
    const int64_t cols = 5120;
    const int64_t rows = dtype == DType::kI8 ? 65536 : dtype == DType::kBF16 ? 16384 : 32768;
    const RandomWeight weight(dtype, {rows, cols});
    const double seconds = linear_seconds(context, weight.view(), 1);
    figures.push_back(rate_figure(fmt::format("gemv {} [{}, {}], {} threads", dtype_label(dtype),
                                              rows, cols, ceilings.threads),
                                  static_cast<double>(weight.bytes()) / seconds * 1e-9, "GB/s",
                                  ceilings.read_gb_s, dtype == DType::kBF16 ? 0 : kGemvTarget));
  }
  return figures;
}

std::vector<Figure> bench_gemm(const kernels::Context& context, const Ceilings& ceilings) {
  constexpr int64_t kRows = 256;
  // wq_b and an expert's up and down projection.
  constexpr Shape kShapes[] = {{8192, 1280}, {2304, 5120}, {5120, 2304}};
  std::vector<Figure> figures;
  for (DType dtype : {DType::kF8E4M3, DType::kI8, DType::kBF16}) {
    for (Shape shape : kShapes) {
      const RandomWeight weight(dtype, shape);
      const double seconds = linear_seconds(context, weight.view(), kRows);
      const auto operations = static_cast<double>(2 * kRows * shape.rows * shape.cols);
      figures.push_back(rate_figure(fmt::format("gemm {} [{}, {}], {} threads", dtype_label(dtype),
                                                shape.rows, shape.cols, ceilings.threads),
                                    operations / seconds * 1e-9, "GFLOP/s", ceilings.bf16_gflop_s,
                                    kGemmTarget));
    }
  }
  return figures;
}

std::vector<Figure> bench_attention(const kernels::Context& context, const Ceilings& ceilings) {
  constexpr int64_t kHeads = 64;
  constexpr int64_t kDim = 512;
  constexpr int64_t kWindow = 128;
  constexpr int64_t kSelected = 512;
  constexpr int64_t kCached = 16384;  // 16 MB of rows to select from
  const auto bf16_rows = [](int64_t count) {
    const std::vector<float> values = random_values(count * kDim);
    std::vector<uint16_t> rows(values.size());
    std::transform(values.begin(), values.end(), rows.begin(), f32_to_bf16);
    return rows;
  };
  const std::vector<uint16_t> window = bf16_rows(kWindow);
  const std::vector<uint16_t> cached = bf16_rows(kCached);
  const std::vector<float> q = random_values(kHeads * kDim);
  const std::vector<float> sink(kHeads, 0.0F);
  std::vector<int32_t> list(kSelected);
  for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int32_t>(i * kCached / kSelected);
  const kernels::RowRange range{0, kWindow};
  std::vector<float> y(q.size());
  const double seconds = best_seconds(kRepeats * 4, [&] {
    kernels::attention(context, {.q = {q.data(), 1, kHeads * kDim},
                                 .head_dim = kDim,
                                 .scale = 0.044194173F,
                                 .window = {DType::kBF16, window.data(), kWindow, kDim, kDim},
                                 .window_range = {&range, 1},
                                 .selected = {DType::kBF16, cached.data(), kCached, kDim, kDim},
                                 .selected_index = {list.data(), 1, kSelected},
                                 .sink = sink,
                                 .y = {y.data(), 1, kHeads * kDim},
                                 .round_bf16 = true});
  });
  const double product = 2.0 * kHeads * (kWindow + kSelected) * kDim * 1e-9;
  const double read = (kWindow + kSelected) * kDim * 2 * 1e-9 / ceilings.read_gb_s;
  const double compute = product / ceilings.bf16_gflop_s + product / ceilings.f32_gflop_s;
  const double bound = std::max(read, compute) * 1e6;
  Figure figure =
      time_figure(fmt::format("attention 640 rows, 64x512, {} threads", ceilings.threads),
                  seconds * 1e6, "us", bound, 1 / kAttentionTarget);
  return {figure};
}

}  // namespace fathom::bench
