// Shared by the four picture targets: decode what claims to be `format`, under small limits, and
// hold the promises of io/picture/decode.h.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "io/picture/decode.h"

inline int fuzz_picture(fathom::PictureFormat format, const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  const auto info = fathom::probe_picture(bytes);
  if (!info.is_ok() || info->format != format) return 0;
  const fathom::PictureLimits limits{.side_max = 2048,
                                     .pixels_max = 1 << 18,
                                     .decode_bytes_max = 8 << 20,
                                     .decode_time_max = std::chrono::seconds(2)};
  const auto image = fathom::decode_picture(bytes, limits);
  if (!image.is_ok()) return 0;
  FATHOM_CHECK(image->width == info->width && image->height == info->height,
               "probe says {}x{}, decode {}x{}", info->width, info->height, image->width,
               image->height);
  const auto bytes_wanted = static_cast<size_t>(image->width * image->height * 3);
  FATHOM_CHECK(image->pixels.size() == bytes_wanted, "{} bytes", image->pixels.size());
  return 0;
}
