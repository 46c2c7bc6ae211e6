#include "model/deepseek_v41/vision/patches.h"

#include <array>
#include <cmath>
#include <cstring>

#include "model/deepseek_v41/vision/resample.h"
#include "tensor/codec.h"

namespace fathom::v41 {
namespace {

constexpr uint8_t kGrey = 127;

struct Box {
  int64_t width = 0;
  int64_t height = 0;
};

// Largest size of the picture's shape inside the box. nearbyint rounds half to even.
Box inner_size(const RgbImage& image, const ResizePlan& plan) {
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  const auto box_width = static_cast<double>(plan.box_width);
  const auto box_height = static_cast<double>(plan.box_height);
  Box inner{plan.box_width, plan.box_height};
  if (width / height > box_width / box_height) {
    inner.height = static_cast<int64_t>(std::nearbyint(height / width * box_width));
  } else if (width / height < box_width / box_height) {
    inner.width = static_cast<int64_t>(std::nearbyint(width / height * box_height));
  }
  return inner;
}

int64_t centred(int64_t outer, int64_t inner) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(outer - inner) * 0.5));
}

// bf16((b / 255 − 0.5) / 0.5) of every byte, each step in f32.
std::array<float, 256> make_byte_table() {
  std::array<float, 256> table{};
  for (size_t byte = 0; byte < table.size(); ++byte) {
    const float value = (static_cast<float>(byte) / 255.0F - 0.5F) / 0.5F;
    table[byte] = round_to_bf16(value);
  }
  return table;
}

}  // namespace

Result<RgbImage> fit_to_box(const RgbImage& image, const ResizePlan& plan,
                            const VisionConfig& vision, ThreadPool& pool) {
  if (vision.max_wh_ratio && static_cast<double>(image.width) >=
                                 *vision.max_wh_ratio * static_cast<double>(image.height)) {
    return resize_bicubic(image, plan.box_width, plan.box_height, pool);
  }
  const Box inner = inner_size(image, plan);
  if (inner.width < 1 || inner.height < 1) {
    return error(Code::kInvalidArgument,
                 "a picture of {}x{} pixels is too thin: inside {}x{} nothing of it is left",
                 image.width, image.height, plan.box_width, plan.box_height);
  }
  const RgbImage resized = resize_bicubic(image, inner.width, inner.height, pool);
  RgbImage canvas{plan.box_width, plan.box_height, {}};
  canvas.pixels.assign(static_cast<size_t>(plan.box_width * plan.box_height * 3), kGrey);
  const int64_t left = centred(plan.box_width, inner.width);
  const int64_t top = centred(plan.box_height, inner.height);
  for (int64_t y = 0; y < inner.height; ++y) {
    std::memcpy(&canvas.pixels[static_cast<size_t>(((top + y) * plan.box_width + left) * 3)],
                &resized.pixels[static_cast<size_t>(y * inner.width * 3)],
                static_cast<size_t>(inner.width * 3));
  }
  return canvas;
}

std::vector<float> make_patches(const RgbImage& canvas, int64_t patch_size) {
  static const std::array<float, 256> kByteTable = make_byte_table();
  std::vector<float> patches(canvas.pixels.size());
  float* to = patches.data();
  for (int64_t top = 0; top < canvas.height; top += patch_size) {
    for (int64_t left = 0; left < canvas.width; left += patch_size) {
      for (int64_t i = 0; i < 3 * patch_size * patch_size; ++i) {
        const int64_t c = i / (patch_size * patch_size);
        const int64_t y = top + i / patch_size % patch_size;
        const int64_t x = left + i % patch_size;
        *to++ = kByteTable[canvas.pixels[static_cast<size_t>((y * canvas.width + x) * 3 + c)]];
      }
    }
  }
  return patches;
}

}  // namespace fathom::v41
