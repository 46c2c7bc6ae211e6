// Against Pillow's bytes in tests/data/vision/resize.safetensors (make_resize.py).
#include "model/deepseek_v41/vision/resample.h"

#include <gtest/gtest.h>

#include "io/safetensors.h"

namespace fathom::v41 {
namespace {

RgbImage image_of(const SafetensorsFile& file, const std::string& name) {
  const TensorEntry* entry = file.find(name);
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data(*entry));
  return {entry->shape[1], entry->shape[0], {bytes, bytes + entry->bytes}};
}

TEST(Resample, EqualsPillowByteForByteOnAnyThreadCount) {
  const auto file =
      SafetensorsFile::open(FATHOM_SOURCE_DIR "/tests/data/vision/resize.safetensors");
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    int count = 0;
    for (; (*file)->find(std::to_string(count) + ".in") != nullptr; ++count) {
      const RgbImage want = image_of(**file, std::to_string(count) + ".out");
      const RgbImage found = resize_bicubic(image_of(**file, std::to_string(count) + ".in"),
                                            want.width, want.height, pool);
      EXPECT_EQ(found.pixels, want.pixels) << "picture " << count;
    }
    EXPECT_EQ(count, 8);
  }
}

TEST(Resample, SameSizeIsACopy) {
  ThreadPool pool(1);
  const RgbImage image{2, 1, {1, 2, 3, 250, 251, 252}};
  EXPECT_EQ(resize_bicubic(image, 2, 1, pool).pixels, image.pixels);
}

}  // namespace
}  // namespace fathom::v41
