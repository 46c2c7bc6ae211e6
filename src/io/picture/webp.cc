// WebP by libwebp: lossy, lossless, alpha, and the first frame of a moving picture on its canvas.
// Of the metadata only the EXIF orientation is looked at.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "io/picture/internal/codec.h"
#include "io/picture/internal/exif.h"

namespace fathom::picture {
namespace {

// Bytes given to the decoder between two looks at the clock.
constexpr size_t kSliceBytes = size_t{64} << 10;

uint64_t read_le32(Bytes bytes, size_t at) {
  return uint64_t{bytes[at]} | uint64_t{bytes[at + 1]} << 8 | uint64_t{bytes[at + 2]} << 16 |
         uint64_t{bytes[at + 3]} << 24;
}

// Of the EXIF chunk, which only the extended form has. 1 when there is none.
int find_orientation(Bytes bytes) {
  constexpr size_t kRiffHeadBytes = 12;
  constexpr size_t kChunkHeadBytes = 8;  // name, length
  if (!starts_with(bytes.subspan(kRiffHeadBytes), "VP8X")) return 1;
  size_t at = kRiffHeadBytes;
  while (at + kChunkHeadBytes <= bytes.size()) {
    const size_t length = read_le32(bytes, at + 4);
    if (length > bytes.size() - at - kChunkHeadBytes) return 1;
    if (starts_with(bytes.subspan(at), "EXIF"))
      return exif_orientation(bytes.subspan(at + kChunkHeadBytes, length));
    at += kChunkHeadBytes + length + length % 2;  // chunks begin at even places
  }
  return 1;
}

Status damaged(std::string_view what) {
  return error(Code::kInvalidArgument, "WebP picture is damaged: {}", what);
}

Result<WebPBitstreamFeatures> read_features(Bytes bytes) {
  WebPBitstreamFeatures features;
  switch (WebPGetFeatures(bytes.data(), bytes.size(), &features)) {
    case VP8_STATUS_OK:
      return features;
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return damaged("its header is cut");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return error(Code::kUnsupported, "WebP picture of a kind that libwebp does not read");
    default:
      return damaged("its header is broken");
  }
}

// Decodes one still picture into `out`, which holds `count` bytes in the colour space.
Status decode_still(Bytes data, WEBP_CSP_MODE mode, int64_t stride, std::span<uint8_t> out,
                    const DecodeRequest& request) {
  std::unique_ptr<WebPIDecoder, decltype(&WebPIDelete)> decoder(
      WebPINewRGB(mode, out.data(), out.size(), static_cast<int>(stride)), WebPIDelete);
  if (decoder == nullptr) {
    return error(Code::kResourceExhausted, "WebP picture: no memory to start decoding");
  }
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (size_t end = 0; end < data.size() && status == VP8_STATUS_SUSPENDED;) {
    if (is_past(request.deadline)) return deadline_error(PictureFormat::kWebp, request.info);
    end = std::min(end + kSliceBytes, data.size());
    status = WebPIUpdate(decoder.get(), data.data(), end);
  }
  if (status == VP8_STATUS_OK) return Status::ok();
  return damaged(status == VP8_STATUS_SUSPENDED ? "its data ends too early" : "its data is broken");
}

// Decodes a still picture of the size and pastes it, blended on white, at (left, top) of `canvas`.
struct Place {
  int64_t left = 0;
  int64_t top = 0;
};
Status paste_still(Bytes data, const DecodeRequest& request, Place place, RgbImage* canvas) {
  FATHOM_ASSIGN(const WebPBitstreamFeatures features, read_features(data));
  const int64_t width = features.width;
  const int64_t height = features.height;
  if (place.left + width > canvas->width || place.top + height > canvas->height) {
    return damaged("its first frame leaves the canvas");
  }
  if (features.has_alpha == 0 && width == canvas->width && height == canvas->height) {
    return decode_still(data, MODE_RGB, width * 3, canvas->pixels, request);
  }
  std::vector<uint8_t> rgba(static_cast<size_t>(width * height * 4));
  FATHOM_TRY(decode_still(data, MODE_RGBA, width * 4, rgba, request));
  for (int64_t y = 0; y < height; ++y) {
    const int64_t at = ((place.top + y) * canvas->width + place.left) * 3;
    blend_on_white(&rgba[static_cast<size_t>(y * width * 4)], width,
                   &canvas->pixels[static_cast<size_t>(at)]);
  }
  return Status::ok();
}

struct DemuxDelete {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

Status paste_first_frame(const DecodeRequest& request, RgbImage* canvas) {
  const WebPData data{request.bytes.data(), request.bytes.size()};
  const std::unique_ptr<WebPDemuxer, DemuxDelete> demuxer(WebPDemux(&data));
  WebPIterator frame{};
  if (demuxer == nullptr || WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0) {
    return damaged("no first frame");
  }
  const Status status = frame.complete == 0
                            ? damaged("its first frame ends too early")
                            : paste_still(Bytes(frame.fragment.bytes, frame.fragment.size), request,
                                          {.left = frame.x_offset, .top = frame.y_offset}, canvas);
  WebPDemuxReleaseIterator(&frame);
  return status;
}

}  // namespace

Result<PictureInfo> probe_webp(Bytes bytes) {
  FATHOM_ASSIGN(const WebPBitstreamFeatures features, read_features(bytes));
  const uint64_t riff_bytes = read_le32(bytes, 4) + 8;
  if (riff_bytes > bytes.size()) {
    return error(Code::kInvalidArgument, "WebP picture says {} bytes, {} are there", riff_bytes,
                 bytes.size());
  }
  PictureInfo info{
      .format = PictureFormat::kWebp, .width = features.width, .height = features.height};
  // Lossless pictures and those with alpha pass through a four-byte copy inside libwebp and ours.
  // The copies are given back before the picture is turned.
  const bool has_copy = features.has_alpha != 0 || features.has_animation != 0;
  const int orientation = find_orientation(bytes);
  const int copies = (features.format == 1 ? 0 : 4) + (has_copy ? 4 : 0);
  const int turned = orientation != 1 ? 3 : 0;
  info.decode_bytes = memory_bytes(info.width, info.height, 3 + std::max(copies, turned));
  if (swaps_sides(orientation)) std::swap(info.width, info.height);
  return info;
}

Result<RgbImage> decode_webp(const DecodeRequest& request) {
  FATHOM_ASSIGN(const WebPBitstreamFeatures features, read_features(request.bytes));
  RgbImage image = make_image(features.width, features.height, 255);
  FATHOM_TRY(features.has_animation != 0 ? paste_first_frame(request, &image)
                                         : paste_still(request.bytes, request, {}, &image));
  return apply_orientation(std::move(image), find_orientation(request.bytes));
}

}  // namespace fathom::picture
