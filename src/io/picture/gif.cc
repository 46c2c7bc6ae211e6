// GIF by giflib: the first frame only, on a white canvas. Later frames are never unpacked.
#include <gif_lib.h>

#include <algorithm>
#include <memory>

#include "io/picture/internal/codec.h"

namespace fathom::picture {
namespace {

struct GifInput {
  Bytes bytes;
  size_t position = 0;
};

int on_read(GifFileType* gif, GifByteType* out, int count) {
  auto* input = static_cast<GifInput*>(gif->UserData);
  const size_t left = input->bytes.size() - input->position;
  const size_t taken = std::min(left, static_cast<size_t>(count));
  std::memcpy(out, input->bytes.data() + input->position, taken);
  input->position += taken;
  return static_cast<int>(taken);
}

struct GifClose {
  void operator()(GifFileType* gif) const {
    int ignored = 0;
    DGifCloseFile(gif, &ignored);
  }
};
using GifFile = std::unique_ptr<GifFileType, GifClose>;

Status damaged(const DecodeRequest& request, std::string_view what) {
  return error(Code::kInvalidArgument, "GIF picture of {}x{} is damaged: {}", request.info.width,
               request.info.height, what);
}

Status library_error(const DecodeRequest& request, const GifFileType* gif) {
  const char* text = GifErrorString(gif->Error);
  return damaged(request, text == nullptr ? "its data is broken" : text);
}

// Walks over extensions to the first frame; `transparent` gets its colour index or -1.
Status find_frame(GifFileType* gif, const DecodeRequest& request, int* transparent) {
  *transparent = -1;
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return library_error(request, gif);
    if (type == TERMINATE_RECORD_TYPE) return damaged(request, "it has no frame");
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return library_error(request, gif);
    while (block != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        *transparent = control.TransparentColor;
      }
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return library_error(request, gif);
      if (is_past(request.deadline)) return deadline_error(PictureFormat::kGif, request.info);
    }
  }
  return DGifGetImageDesc(gif) == GIF_ERROR ? library_error(request, gif) : Status::ok();
}

// The frame's rows in the order of the file; interlaced files send every 8th, 8th, 4th, 2nd.
std::vector<int64_t> row_order(const GifImageDesc& frame) {
  std::vector<int64_t> rows;
  constexpr int64_t kFirst[] = {0, 4, 2, 1};
  constexpr int64_t kStep[] = {8, 8, 4, 2};
  if (!frame.Interlace) {
    for (int64_t y = 0; y < frame.Height; ++y) rows.push_back(y);
    return rows;
  }
  for (int pass = 0; pass < 4; ++pass) {
    for (int64_t y = kFirst[pass]; y < frame.Height; y += kStep[pass]) rows.push_back(y);
  }
  return rows;
}

Status paste_frame(GifFileType* gif, const DecodeRequest& request, int transparent,
                   RgbImage* canvas) {
  const GifImageDesc& frame = gif->Image;
  if (frame.Left < 0 || frame.Top < 0 || frame.Width < 1 || frame.Height < 1 ||
      int64_t{frame.Left} + frame.Width > canvas->width ||
      int64_t{frame.Top} + frame.Height > canvas->height) {
    return error(Code::kInvalidArgument,
                 "GIF picture of {}x{}: its first frame ({}x{} at {},{}) "
                 "leaves it",
                 canvas->width, canvas->height, frame.Width, frame.Height, frame.Left, frame.Top);
  }
  const ColorMapObject* colours = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (colours == nullptr) return damaged(request, "it has no colour table");
  std::vector<GifPixelType> line(static_cast<size_t>(frame.Width));
  for (int64_t y : row_order(frame)) {
    if (is_past(request.deadline)) return deadline_error(PictureFormat::kGif, request.info);
    if (DGifGetLine(gif, line.data(), frame.Width) == GIF_ERROR) return library_error(request, gif);
    const int64_t at = ((frame.Top + y) * canvas->width + frame.Left) * 3;
    uint8_t* out = &canvas->pixels[static_cast<size_t>(at)];
    for (GifPixelType pixel : line) {
      if (pixel >= colours->ColorCount) return damaged(request, "a colour is not in its table");
      const GifColorType& colour = colours->Colors[pixel];
      if (pixel != transparent) {
        out[0] = colour.Red;
        out[1] = colour.Green;
        out[2] = colour.Blue;
      }
      out += 3;
    }
  }
  return Status::ok();
}

}  // namespace

Result<PictureInfo> probe_gif(Bytes bytes) {
  if (bytes.size() < 13) {
    return error(Code::kInvalidArgument, "GIF picture of {} bytes: its header is cut",
                 bytes.size());
  }
  PictureInfo info{.format = PictureFormat::kGif,
                   .width = bytes[6] | bytes[7] << 8,
                   .height = bytes[8] | bytes[9] << 8};
  info.decode_bytes = memory_bytes(info.width, info.height, 3);
  return info;
}

Result<RgbImage> decode_gif(const DecodeRequest& request) {
  GifInput input{.bytes = request.bytes};
  int code = 0;
  const GifFile gif(DGifOpen(&input, on_read, &code));
  if (gif == nullptr) {
    const char* text = GifErrorString(code);
    return damaged(request, text == nullptr ? "its header is broken" : text);
  }
  int transparent = -1;
  FATHOM_TRY(find_frame(gif.get(), request, &transparent));
  RgbImage image = make_image(request.info.width, request.info.height, 255);
  FATHOM_TRY(paste_frame(gif.get(), request, transparent, &image));
  return image;
}

}  // namespace fathom::picture
