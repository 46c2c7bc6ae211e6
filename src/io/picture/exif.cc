// EXIF is a TIFF file inside a picture: a byte order mark, then a directory of 12-byte entries.
#include "io/picture/internal/exif.h"

namespace fathom::picture {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kEntryBytes = 12;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;

uint32_t read_number(Bytes bytes, size_t at, int size, bool is_big_endian) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) {
    const int shift = 8 * (is_big_endian ? size - 1 - i : i);
    value |= uint32_t{bytes[at + static_cast<size_t>(i)]} << shift;
  }
  return value;
}

}  // namespace

int exif_orientation(Bytes block) {
  constexpr std::string_view kMark("Exif\0\0", 6);
  const Bytes tiff = starts_with(block, kMark) ? block.subspan(kMark.size()) : block;
  const bool is_big_endian = starts_with(tiff, "MM");
  if (tiff.size() < kHeaderBytes || (!is_big_endian && !starts_with(tiff, "II"))) return 1;
  const size_t directory = read_number(tiff, 4, 4, is_big_endian);
  if (tiff.size() < 2 || directory > tiff.size() - 2) return 1;
  const size_t count = read_number(tiff, directory, 2, is_big_endian);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (read_number(tiff, entry, 2, is_big_endian) != kOrientationTag) continue;
    if (read_number(tiff, entry + 2, 2, is_big_endian) != kShortType) return 1;
    const uint32_t value = read_number(tiff, entry + 8, 2, is_big_endian);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

RgbImage apply_orientation(RgbImage image, int orientation) {
  if (orientation == 1) return image;
  // 2 mirror, 3 half turn, 4 flip, 5 transpose, 6 quarter turn right, 7 transverse, 8 quarter left.
  // As steps on the source: transpose for 5 to 8, then from where each side is read backwards.
  const bool swaps = swaps_sides(orientation);
  const bool mirrors_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirrors_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  RgbImage out =
      swaps ? make_image(image.height, image.width) : make_image(image.width, image.height);
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x, to += 3) {
      int64_t from_x = swaps ? y : x;
      int64_t from_y = swaps ? x : y;
      if (mirrors_x) from_x = image.width - 1 - from_x;
      if (mirrors_y) from_y = image.height - 1 - from_y;
      std::memcpy(to, &image.pixels[static_cast<size_t>((from_y * image.width + from_x) * 3)], 3);
    }
  }
  return out;
}

}  // namespace fathom::picture
