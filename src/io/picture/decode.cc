// Tells the format from the first bytes, checks the limits and hands over to the format's file.
#include "io/picture/decode.h"

#include <algorithm>
#include <array>

#include "io/picture/decode_gate.h"
#include "io/picture/internal/codec.h"

namespace fathom {
namespace {

using picture::Bytes;
using picture::starts_with;

// Memory and cores are the process's, so one gate for all callers.
DecodeGate& gate() {
  static DecodeGate the_gate(4, int64_t{512} << 20);
  return the_gate;
}

struct Codec {
  PictureFormat format;
  Result<PictureInfo> (*probe)(Bytes);
  Result<RgbImage> (*decode)(const picture::DecodeRequest&);
};

constexpr Codec kPng{PictureFormat::kPng, picture::probe_png, picture::decode_png};
constexpr Codec kJpeg{PictureFormat::kJpeg, picture::probe_jpeg, picture::decode_jpeg};
constexpr Codec kWebp{PictureFormat::kWebp, picture::probe_webp, picture::decode_webp};
constexpr Codec kGif{PictureFormat::kGif, picture::probe_gif, picture::decode_gif};

// Formats that people do send and that we name in the refusal.
std::string_view foreign_format(Bytes bytes) {
  if (starts_with(bytes, "BM")) return "BMP";
  if (starts_with(bytes, "%PDF")) return "PDF";
  if (starts_with(bytes, std::string_view("II*\0", 4))) return "TIFF";
  if (starts_with(bytes, std::string_view("MM\0*", 4))) return "TIFF";
  if (starts_with(bytes, "<svg") || starts_with(bytes, "<?xml")) return "SVG";
  if (bytes.size() >= 12 && starts_with(bytes.subspan(4), "ftyp")) {
    return starts_with(bytes.subspan(8), "avif") ? "AVIF" : "HEIC";
  }
  return "";
}

Result<const Codec*> find_codec(Bytes bytes) {
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return &kPng;
  if (starts_with(bytes, "\xff\xd8\xff")) return &kJpeg;
  if (starts_with(bytes, "GIF87a") || starts_with(bytes, "GIF89a")) return &kGif;
  if (starts_with(bytes, "RIFF") && bytes.size() >= 12 && starts_with(bytes.subspan(8), "WEBP")) {
    return &kWebp;
  }
  if (bytes.empty()) return error(Code::kInvalidArgument, "the picture has 0 bytes");
  const std::string_view foreign = foreign_format(bytes);
  if (!foreign.empty()) {
    return error(Code::kUnsupported, "{} pictures are not read; send PNG, JPEG, WebP or GIF",
                 foreign);
  }
  std::string head;
  for (uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
    head += fmt::format("{:02x}", byte);
  }
  return error(Code::kInvalidArgument,
               "{} bytes that begin with {} are no picture; send PNG, JPEG, WebP or GIF",
               bytes.size(), head);
}

}  // namespace

std::string_view picture_format_name(PictureFormat format) {
  constexpr std::array<std::string_view, 4> kNames = {"PNG", "JPEG", "WebP", "GIF"};
  return kNames[static_cast<size_t>(format)];
}

Result<PictureInfo> probe_picture(std::span<const uint8_t> bytes) {
  FATHOM_ASSIGN(const Codec* codec, find_codec(bytes));
  FATHOM_ASSIGN(PictureInfo info, codec->probe(bytes));
  if (info.width < 1 || info.height < 1) {
    return error(Code::kInvalidArgument,
                 "{} picture of {}x{} pixels: both sides must be at least 1",
                 picture_format_name(info.format), info.width, info.height);
  }
  return info;
}

Status check_picture_limits(const PictureInfo& info, const PictureLimits& limits) {
  const std::string what = fmt::format("{} picture of {}x{} pixels",
                                       picture_format_name(info.format), info.width, info.height);
  const int64_t long_side = std::max(info.width, info.height);
  const int64_t short_side = std::min(info.width, info.height);
  if (long_side > limits.side_max) {
    return error(Code::kInvalidArgument, "{}: a side may have at most {} pixels", what,
                 limits.side_max);
  }
  if (info.width * info.height > limits.pixels_max) {
    return error(Code::kInvalidArgument, "{}: {} pixels, at most {} are accepted", what,
                 info.width * info.height, limits.pixels_max);
  }
  if (long_side > short_side * limits.ratio_max) {
    return error(Code::kInvalidArgument, "{}: the long side may be at most {} times the short one",
                 what, limits.ratio_max);
  }
  if (info.decode_bytes > limits.decode_bytes_max) {
    return error(Code::kInvalidArgument,
                 "{}: decoding needs {} bytes of memory, at most {} are used", what,
                 info.decode_bytes, limits.decode_bytes_max);
  }
  return Status::ok();
}

Result<RgbImage> decode_picture(std::span<const uint8_t> bytes, const PictureLimits& limits) {
  const picture::Deadline deadline = std::chrono::steady_clock::now() + limits.decode_time_max;
  if (static_cast<int64_t>(bytes.size()) > limits.encoded_bytes_max) {
    return error(Code::kInvalidArgument, "picture of {} encoded bytes, at most {} are accepted",
                 bytes.size(), limits.encoded_bytes_max);
  }
  FATHOM_ASSIGN(const PictureInfo info, probe_picture(bytes));
  FATHOM_TRY(check_picture_limits(info, limits));
  FATHOM_ASSIGN(const Codec* codec, find_codec(bytes));
  FATHOM_ASSIGN(const DecodeGate::Pass pass, gate().enter(info.decode_bytes, deadline));
  return codec->decode({.bytes = bytes,
                        .info = info,
                        .deadline = deadline,
                        .pixels_max = limits.pixels_max,
                        .jpeg_scans_max = limits.jpeg_scans_max});
}

}  // namespace fathom
