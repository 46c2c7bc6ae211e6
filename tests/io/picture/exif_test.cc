#include "io/picture/internal/exif.h"

#include <gtest/gtest.h>

namespace fathom::picture {
namespace {

// One-entry EXIF block with the tag and value, in either byte order.
std::vector<uint8_t> exif_block(bool is_big_endian, uint16_t tag, uint16_t value) {
  std::vector<uint8_t> block = {'E', 'x', 'i', 'f', 0, 0};
  const auto put = [&](uint32_t number, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (is_big_endian ? size - 1 - i : i);
      block.push_back(static_cast<uint8_t>(number >> shift));
    }
  };
  block.insert(block.end(), 2, is_big_endian ? 'M' : 'I');
  put(42, 2);
  put(8, 4);
  put(1, 2);
  put(tag, 2);
  put(3, 2);
  put(1, 4);
  put(value, 2);
  put(0, 2);
  return block;
}

TEST(Exif, ReadsTheTagInBothByteOrders) {
  for (const bool is_big_endian : {false, true}) {
    for (uint16_t value = 1; value <= 8; ++value) {
      EXPECT_EQ(exif_orientation(exif_block(is_big_endian, 0x0112, value)), value);
    }
  }
}

TEST(Exif, AnythingElseIsUpright) {
  EXPECT_EQ(exif_orientation({}), 1);
  EXPECT_EQ(exif_orientation(exif_block(true, 0x0112, 9)), 1);
  EXPECT_EQ(exif_orientation(exif_block(true, 0x0113, 6)), 1);
  const std::vector<uint8_t> block = exif_block(false, 0x0112, 6);
  for (size_t length = 0; length + 4 < block.size(); ++length) {
    EXPECT_EQ(exif_orientation(Bytes(block).first(length)), 1) << "cut to " << length;
  }
  std::vector<uint8_t> far = block;
  far[10] = far[11] = far[12] = far[13] = 0xff;  // directory at 4 GB
  EXPECT_EQ(exif_orientation(far), 1);
}

// Red values of a picture, row after row.
std::vector<int> reds(const RgbImage& image) {
  std::vector<int> out;
  for (size_t i = 0; i < image.pixels.size(); i += 3) out.push_back(image.pixels[i]);
  return out;
}

TEST(Exif, TurnsByEachOrientation) {
  // 1 2 3
  // 4 5 6
  RgbImage image = make_image(3, 2);
  for (size_t i = 0; i < 6; ++i) image.pixels[3 * i] = static_cast<uint8_t>(i + 1);
  const std::vector<int> want[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                   {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                   {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const RgbImage turned = apply_orientation(image, orientation);
    EXPECT_EQ(turned.width, orientation >= 5 ? 2 : 3) << orientation;
    EXPECT_EQ(reds(turned), want[orientation - 1]) << orientation;
  }
}

}  // namespace
}  // namespace fathom::picture
