// The front door of the picture decoders: encoded bytes in, 8-bit RGB out. The bytes decide the
// format; a declared type is never looked at. Nothing is fetched, cached or resized here.
//
// PNG (8 and 16 bit, grey, palette, transparency, interlaced), JPEG (baseline and progressive,
// grey, YCbCr, RGB, CMYK, YCCK), WebP (lossy, lossless, alpha) and GIF; of a moving GIF or WebP the
// first frame. The eight EXIF orientations are applied. See-through parts are blended on white.
// 16-bit samples keep their high byte. Colour profiles and gamma are ignored, other metadata is
// skipped.
//
// Thread safe. The libraries' errors never leave as a jump or an exception.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "io/picture/rgb_image.h"

namespace fathom {

enum class PictureFormat { kPng, kJpeg, kWebp, kGif };
std::string_view picture_format_name(PictureFormat format);  // "PNG", "JPEG", "WebP", "GIF"

// What the header says, and so what decode_picture would produce; orientation is applied already.
struct PictureInfo {
  PictureFormat format = PictureFormat::kPng;
  int64_t width = 0;         // pixels
  int64_t height = 0;        // pixels
  int64_t decode_bytes = 0;  // most memory that decoding may hold, the picture itself included
};

// Defaults are those of the HTTP interface. All but the scan count and the time are checked from
// the header, before any memory is taken.
struct PictureLimits {
  int64_t encoded_bytes_max = int64_t{32} << 20;
  int64_t side_max = 16384;  // pixels, each side
  int64_t pixels_max = int64_t{64} << 20;
  int64_t ratio_max = 400;  // long side : short side
  int64_t decode_bytes_max = int64_t{512} << 20;
  int jpeg_scans_max = 100;  // a progressive JPEG of many scans costs time out of all proportion
  std::chrono::milliseconds decode_time_max{10'000};
};

// Reads only the header. Errors: kUnsupported for a format or kind we do not read, by name;
// kInvalidArgument for bytes that are no picture, or whose header is cut or broken.
Result<PictureInfo> probe_picture(std::span<const uint8_t> bytes);

// kInvalidArgument naming the size found and the limit.
Status check_picture_limits(const PictureInfo& info, const PictureLimits& limits);

// Probes, checks the limits, decodes. A picture whose data is cut or damaged is refused, never
// returned in part. At most 4 pictures are decoded at a time, with 512 MiB between them; the others
// wait. Errors: those of the two functions above; kDeadlineExceeded; kUnavailable when no place
// came free in decode_time_max: the picture may be good, try again.
Result<RgbImage> decode_picture(std::span<const uint8_t> bytes, const PictureLimits& limits = {});

}  // namespace fathom
