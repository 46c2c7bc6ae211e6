// PNG by libpng. Of the side chunks only eXIf is looked at, for the orientation; text, profiles and
// all others are skipped unread. A wrong checksum anywhere refuses the picture. 16-bit samples keep
// the high byte, as Pillow does.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <utility>

#include "io/picture/internal/codec.h"
#include "io/picture/internal/exif.h"

namespace fathom::picture {
namespace {

constexpr size_t kHeaderBytes = 33;  // signature, then the IHDR chunk: length, name, 13, checksum

uint32_t read_be32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

// Everything a decode owns or reports. libpng leaves by longjmp, so whatever lives across the jump
// sits here, in the caller's frame, and not in the function that called setjmp.
struct PngReader {
  png_structp png = nullptr;
  png_infop header = nullptr;
  Bytes bytes;
  size_t position = 0;
  Deadline deadline;
  bool is_late = false;
  std::string message;
  RgbImage image;
  std::vector<uint8_t> rgba;  // one row, or the whole picture when interlaced; empty if opaque

  ~PngReader() { png_destroy_read_struct(&png, &header, nullptr); }
};

void on_error(png_structp png, png_const_charp text) {
  static_cast<PngReader*>(png_get_error_ptr(png))->message = text;
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->bytes.size() - reader->position) png_error(png, "the data ends too early");
  std::memcpy(out, reader->bytes.data() + reader->position, count);
  reader->position += count;
}

void check_time(PngReader* reader) {
  if (!is_past(reader->deadline)) return;
  reader->is_late = true;
  png_error(reader->png, "too slow");
}

// Asks libpng for 8-bit RGB, or RGBA where the picture has any transparency.
void set_transforms(png_structp png, png_infop header) {
  const int colour = png_get_color_type(png, header);
  png_set_expand(png);  // palette to RGB, small grey to 8 bit, tRNS to alpha
  png_set_strip_16(png);
  if (colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_GRAY_ALPHA) {
    png_set_gray_to_rgb(png);
  }
}

void read_pixels(PngReader* reader, int passes, int channels) {
  const int64_t width = reader->image.width;
  const int64_t height = reader->image.height;
  uint8_t* out = reader->image.pixels.data();
  if (passes == 1 && channels == 4) {  // blend row by row; a second copy would cost 4 bytes a pixel
    reader->rgba.resize(static_cast<size_t>(width * 4));
    for (int64_t y = 0; y < height; ++y) {
      check_time(reader);
      png_read_row(reader->png, reader->rgba.data(), nullptr);
      blend_on_white(reader->rgba.data(), width, out + y * width * 3);
    }
    return;
  }
  if (channels == 4) reader->rgba.resize(static_cast<size_t>(width * height * 4));
  uint8_t* rows = channels == 4 ? reader->rgba.data() : out;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < height; ++y) {
      check_time(reader);
      png_read_row(reader->png, rows + y * width * channels, nullptr);
    }
  }
  if (channels == 4) blend_on_white(reader->rgba.data(), width * height, out);
}

// The only function with a setjmp: it holds no object of its own. False: see reader->message.
bool run(PngReader* reader) {
  if (setjmp(png_jmpbuf(reader->png)) != 0) return false;
  png_structp png = reader->png;
  png_set_read_fn(png, reader, on_read);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_user_limits(png, static_cast<png_uint_32>(reader->image.width),
                      static_cast<png_uint_32>(reader->image.height));
  // Known chunks that we do not want (text may unpack to anything), then all unknown ones.
  static const png_byte kSkipped[] = "tEXt\0zTXt\0iTXt\0iCCP\0eXIf\0sPLT\0hIST\0tIME\0pCAL\0sCAL";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kSkipped, 10);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_read_info(png, reader->header);
  set_transforms(png, reader->header);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader->header);
  const int channels = png_get_channels(png, reader->header);
  if (png_get_bit_depth(png, reader->header) != 8 || (channels != 3 && channels != 4)) {
    png_error(png, "a kind of pixel that is not read");
  }
  read_pixels(reader, passes, channels);
  png_read_end(png, nullptr);
  return true;
}

// Of the first eXIf chunk; it may stand behind the pixels. 1 when there is none.
int find_orientation(Bytes bytes) {
  constexpr size_t kSignatureBytes = 8;
  constexpr size_t kChunkFrameBytes = 12;  // length, name, checksum
  size_t at = kSignatureBytes;
  while (at + kChunkFrameBytes <= bytes.size()) {
    const size_t length = read_be32(&bytes[at]);
    if (length > bytes.size() - at - kChunkFrameBytes) return 1;
    if (starts_with(bytes.subspan(at + 4), "eXIf"))
      return exif_orientation(bytes.subspan(at + 8, length));
    at += kChunkFrameBytes + length;
  }
  return 1;
}

}  // namespace

Result<PictureInfo> probe_png(Bytes bytes) {
  if (bytes.size() < kHeaderBytes || !starts_with(bytes.subspan(12), "IHDR")) {
    return error(Code::kInvalidArgument, "PNG picture of {} bytes: its header is cut or broken",
                 bytes.size());
  }
  PictureInfo info{.format = PictureFormat::kPng,
                   .width = read_be32(&bytes[16]),
                   .height = read_be32(&bytes[20])};
  // Whether there is transparency may only show later, so interlaced counts a four-channel copy.
  // It is given back before the picture is turned.
  const int copy = bytes[28] != 0 ? 4 : 0;
  const int orientation = find_orientation(bytes);
  const int turned = orientation != 1 ? 3 : 0;
  info.decode_bytes = memory_bytes(info.width, info.height, 3 + std::max(copy, turned));
  if (swaps_sides(orientation)) std::swap(info.width, info.height);
  return info;
}

Result<RgbImage> decode_png(const DecodeRequest& request) {
  PngReader reader;
  reader.bytes = request.bytes;
  reader.deadline = request.deadline;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
  if (reader.png != nullptr) reader.header = png_create_info_struct(reader.png);
  if (reader.header == nullptr) {
    return error(Code::kResourceExhausted, "PNG picture: no memory to start decoding");
  }
  reader.image = make_image(read_be32(&request.bytes[16]), read_be32(&request.bytes[20]));
  if (run(&reader)) {
    reader.rgba = {};
    return apply_orientation(std::move(reader.image), find_orientation(request.bytes));
  }
  if (reader.is_late) return deadline_error(PictureFormat::kPng, request.info);
  return error(Code::kInvalidArgument, "PNG picture of {}x{} is damaged: {}", request.info.width,
               request.info.height, reader.message);
}

}  // namespace fathom::picture
