// A decoded picture: 8-bit RGB, rows top to bottom, no padding. Made by decode_picture (decode.h).
#pragma once

#include <cstdint>
#include <vector>

namespace fathom {

struct RgbImage {
  int64_t width = 0;            // pixels
  int64_t height = 0;           // pixels
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

}  // namespace fathom
