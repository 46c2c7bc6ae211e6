#include "model/deepseek_v41/vision_bench.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <string>

#include "model/deepseek_v41/vision.h"
#include "tensor/codec.h"

namespace fathom::v41 {
namespace {

// Fast uniform numbers; what they are does not matter, only that no product is trivial.
class Random {
 public:
  float next() {  // in [-1, 1)
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) * 0x1p-31F;
  }

 private:
  uint64_t state_ = 1;
};

// Owns the memory that its views point into.
class RandomWeights {
 public:
  explicit RandomWeights(const VisionBenchOptions& options) {
    const VisionConfig& vision = options.vision;
    const int64_t width = vision.hidden_size;
    const int64_t ratio = vision.downsample_ratio;
    weights_.patch_embed_proj = linear(width, 3 * vision.patch_size * vision.patch_size);
    for (int64_t i = 0; i < vision.num_hidden_layers; ++i) {
      weights_.blocks.push_back({.norm1 = vector(width, 1),
                                 .norm2 = vector(width, 1),
                                 .wqkv = linear(3 * width, width),
                                 .wo = linear(width, width),
                                 .mlp_w1 = matrix(2 * vision.intermediate_size, width),
                                 .mlp_w2 = matrix(width, vision.intermediate_size)});
    }
    weights_.norm = vector(width, 1);
    weights_.aligner_w1 = linear(options.hidden_size, width * ratio * ratio);
    weights_.aligner_w2 = linear(options.hidden_size, options.hidden_size);
    weights_.image_start = vector(options.hidden_size, 0);
    weights_.image_newline = vector(options.hidden_size, 0);
    weights_.image_end = vector(options.hidden_size, 0);
  }

  const VisionWeights& weights() const { return weights_; }
  int64_t bytes() const { return bytes_; }

 private:
  WeightView matrix(int64_t rows, int64_t cols) {
    std::vector<uint16_t>& values = matrices_.emplace_back(static_cast<size_t>(rows * cols));
    const float scale = 1.7F / std::sqrt(static_cast<float>(cols));  // keeps the size of its input
    for (uint16_t& value : values) value = f32_to_bf16(random_.next() * scale);
    bytes_ += rows * cols * 2;
    return {.dtype = DType::kBF16, .rows = rows, .cols = cols, .data = values.data()};
  }
  Vector vector(int64_t count, float centre) {
    std::vector<float>& values = vectors_.emplace_back(static_cast<size_t>(count));
    for (float& value : values) value = round_to_bf16(centre + random_.next() * 0.1F);
    bytes_ += count * 4;
    return values;
  }
  LinearWeights linear(int64_t rows, int64_t cols) {
    return {.weight = matrix(rows, cols), .bias = vector(rows, 0)};
  }

  Random random_;
  std::deque<std::vector<uint16_t>> matrices_;  // a deque: views stay where they are
  std::deque<std::vector<float>> vectors_;
  VisionWeights weights_;
  int64_t bytes_ = 0;
};

RgbImage noise_picture(int64_t width, int64_t height) {
  Random random;
  RgbImage image{width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))};
  for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(128 + 127 * random.next());
  return image;
}

// A line of /proc/self/status, in bytes; 0 where there is none.
int64_t memory_line(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

// The kernel starts counting VmHWM afresh; without the right to it the peak is an upper bound.
void forget_memory_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void count_flop(const VisionBenchOptions& options, const ResizePlan& plan,
                VisionBenchResult* result) {
  const VisionConfig& vision = options.vision;
  const auto width = static_cast<double>(vision.hidden_size);
  const auto patches = static_cast<double>(plan.patch_count());
  const auto layers = static_cast<double>(vision.num_hidden_layers);
  const auto inner = static_cast<double>(vision.intermediate_size);
  const auto patch = static_cast<double>(vision.patch_size);
  const auto ratio = static_cast<double>(vision.downsample_ratio);
  const auto hidden = static_cast<double>(options.hidden_size);
  const double block = 4 * width * width + 3 * width * inner;
  const double aligner = hidden * (width * ratio * ratio + hidden);
  result->linear_flop = 2 * patches * (width * 3 * patch * patch + layers * block) +
                        2 * static_cast<double>(plan.image_token_count()) * aligner;
  result->attention_flop = 4 * patches * patches * width * layers;
}

}  // namespace

Result<VisionBenchResult> run_vision_bench(const kernels::Context& context,
                                           const VisionBenchOptions& options) {
  FATHOM_ASSIGN(const kernels::Policy policy, kernels::find_policy(options.policy));
  FATHOM_ASSIGN(const ResizePlan plan,
                plan_resize(options.picture_width, options.picture_height, options.vision));
  const RandomWeights random(options);
  const RgbImage image = noise_picture(options.picture_width, options.picture_height);
  const VisionTower tower(options.vision, options.hidden_size, random.weights(), policy, context);
  VisionBenchResult result{.patches = plan.patch_count(), .weight_bytes = random.bytes()};
  count_flop(options, plan, &result);

  forget_memory_peak();
  const int64_t bytes_before = memory_line("VmRSS");
  const auto start = std::chrono::steady_clock::now();
  FATHOM_ASSIGN(const PictureTokens tokens, tower.encode(image, {}));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.seconds = elapsed.count();
  result.span_tokens = tokens.count;
  result.extra_bytes_peak = memory_line("VmHWM") - bytes_before;
  return result;
}

}  // namespace fathom::v41
