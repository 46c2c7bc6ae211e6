// What the four format files share: their two functions each, and the helpers every one needs.
// Only picture/ includes this.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "io/picture/decode.h"

namespace fathom::picture {

using Bytes = std::span<const uint8_t>;
using Deadline = std::chrono::steady_clock::time_point;

inline bool is_past(Deadline deadline) {
  return std::chrono::steady_clock::now() >= deadline;
}

inline bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// Each reads the header only. The caller has seen the format's magic bytes.
Result<PictureInfo> probe_png(Bytes bytes);
Result<PictureInfo> probe_jpeg(Bytes bytes);
Result<PictureInfo> probe_webp(Bytes bytes);
Result<PictureInfo> probe_gif(Bytes bytes);

// Each decodes a picture whose probe gave `info` and passed the limits.
struct DecodeRequest {
  Bytes bytes;
  PictureInfo info;
  Deadline deadline;
  int64_t pixels_max = 0;  // for sizes that only appear inside: a GIF's frame
  int jpeg_scans_max = 0;
};
Result<RgbImage> decode_png(const DecodeRequest& request);
Result<RgbImage> decode_jpeg(const DecodeRequest& request);
Result<RgbImage> decode_webp(const DecodeRequest& request);
Result<RgbImage> decode_gif(const DecodeRequest& request);

// Memory for a picture's pixels and a decoder's tables, without overflow for any 32-bit sides.
inline int64_t memory_bytes(int64_t width, int64_t height, int64_t bytes_per_pixel) {
  constexpr int64_t kSideMax = int64_t{1} << 24;
  constexpr int64_t kTables = int64_t{1} << 20;
  if (width > kSideMax || height > kSideMax) return std::numeric_limits<int64_t>::max();
  return width * height * bytes_per_pixel + 64 * width + kTables;
}

// An RgbImage of the size with every byte `fill`.
inline RgbImage make_image(int64_t width, int64_t height, uint8_t fill = 0) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3), fill)};
}

inline Status deadline_error(PictureFormat format, const PictureInfo& info) {
  return error(Code::kDeadlineExceeded, "{} picture of {}x{} took too long to decode",
               picture_format_name(format), info.width, info.height);
}

// Blends `count` RGBA pixels on white: round((c·a + 255·(255−a)) / 255).
inline void blend_on_white(const uint8_t* rgba, int64_t count, uint8_t* rgb) {
  for (int64_t i = 0; i < count; ++i) {
    const int alpha = rgba[4 * i + 3];
    for (int c = 0; c < 3; ++c) {
      const int sum = rgba[4 * i + c] * alpha + 255 * (255 - alpha);
      rgb[3 * i + c] = static_cast<uint8_t>((sum + 127) / 255);
    }
  }
}

}  // namespace fathom::picture
