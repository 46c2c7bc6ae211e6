// Weights are doubles rounded once to 22 fractional bits; everything after that is integer
// arithmetic, so the bytes cannot depend on compiler, ISA or threads.
#include "model/deepseek_v41/vision/resample.h"

#include <algorithm>
#include <cmath>

namespace fathom::v41 {
namespace {

constexpr int kFractionBits = 22;
constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr double kSupport = 2;  // the kernel reaches this far at scale 1

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

// Output i is the sum over k of weight[i][k] · input[first[i] + k].
struct Taps {
  int64_t per_output_max = 0;
  std::vector<int64_t> first;
  std::vector<int64_t> count;
  std::vector<int32_t> weights;  // [outputs, per_output_max]

  const int32_t* weights_of(int64_t i) const {
    return &weights[static_cast<size_t>(i * per_output_max)];
  }
};

Taps make_taps(int64_t input_count, int64_t output_count) {
  const double scale = static_cast<double>(input_count) / static_cast<double>(output_count);
  const double stretch = std::max(1.0, scale);
  const double support = kSupport * stretch;
  const double inverse = 1.0 / stretch;
  Taps taps;
  taps.per_output_max = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<size_t>(output_count * taps.per_output_max));
  std::vector<double> raw(static_cast<size_t>(taps.per_output_max));
  for (int64_t i = 0; i < output_count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t end = std::min(input_count, static_cast<int64_t>(centre + support + 0.5));
    double total = 0;
    for (int64_t k = 0; k < end - first; ++k) {
      const double distance = static_cast<double>(k + first) - centre + 0.5;
      raw[static_cast<size_t>(k)] = bicubic(distance * inverse);
      total += raw[static_cast<size_t>(k)];
    }
    int32_t* weights = &taps.weights[static_cast<size_t>(i * taps.per_output_max)];
    for (int64_t k = 0; k < end - first; ++k) {
      const double share = raw[static_cast<size_t>(k)] / total;
      // Half away from zero.
      weights[k] = static_cast<int32_t>(std::copysign(0.5, share) + share * (1 << kFractionBits));
    }
    taps.first.push_back(first);
    taps.count.push_back(end - first);
  }
  return taps;
}

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp((sum + kHalf) >> kFractionBits, 0, 255));
}

RgbImage empty_image(int64_t width, int64_t height) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))};
}

RgbImage resize_rows(const RgbImage& image, int64_t width, ThreadPool& pool) {
  const Taps taps = make_taps(image.width, width);
  RgbImage out = empty_image(width, image.height);
  pool.parallel_for(image.height, [&](int64_t y, int) {
    const uint8_t* row = &image.pixels[static_cast<size_t>(y * image.width * 3)];
    uint8_t* to = &out.pixels[static_cast<size_t>(y * width * 3)];
    for (int64_t x = 0; x < width; ++x, to += 3) {
      const uint8_t* from = row + taps.first[static_cast<size_t>(x)] * 3;
      const int32_t* weights = taps.weights_of(x);
      int32_t sum[3] = {};
      for (int64_t k = 0; k < taps.count[static_cast<size_t>(x)]; ++k, from += 3) {
        for (int c = 0; c < 3; ++c) sum[c] += from[c] * weights[k];
      }
      for (int c = 0; c < 3; ++c) to[c] = to_byte(sum[c]);
    }
  });
  return out;
}

RgbImage resize_columns(const RgbImage& image, int64_t height, ThreadPool& pool) {
  const Taps taps = make_taps(image.height, height);
  const int64_t row_bytes = image.width * 3;
  RgbImage out = empty_image(image.width, height);
  std::vector<std::vector<int32_t>> sums(static_cast<size_t>(pool.thread_count()));
  pool.parallel_for(height, [&](int64_t y, int thread) {
    std::vector<int32_t>& sum = sums[static_cast<size_t>(thread)];
    sum.assign(static_cast<size_t>(row_bytes), 0);
    const int64_t first = taps.first[static_cast<size_t>(y)];
    for (int64_t k = 0; k < taps.count[static_cast<size_t>(y)]; ++k) {
      const int32_t weight = taps.weights_of(y)[k];
      const uint8_t* row = &image.pixels[static_cast<size_t>((first + k) * row_bytes)];
      for (int64_t i = 0; i < row_bytes; ++i) sum[static_cast<size_t>(i)] += row[i] * weight;
    }
    uint8_t* to = &out.pixels[static_cast<size_t>(y * row_bytes)];
    for (int64_t i = 0; i < row_bytes; ++i) to[i] = to_byte(sum[static_cast<size_t>(i)]);
  });
  return out;
}

}  // namespace

RgbImage resize_bicubic(const RgbImage& image, int64_t width, int64_t height, ThreadPool& pool) {
  if (image.width == width && image.height == height) return image;
  if (image.width == width) return resize_columns(image, height, pool);
  RgbImage wide = resize_rows(image, width, pool);
  return image.height == height ? wide : resize_columns(wide, height, pool);
}

}  // namespace fathom::v41
