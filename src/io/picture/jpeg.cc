// JPEG by libjpeg-turbo with its defaults (exact integer transform, smooth chroma upsampling), the
// ones Pillow uses. Four components are taken as inverted ink, marked by Adobe or not, as Pillow
// does. Data that is cut or broken refuses the picture; harmless oddities do not.
#include <cstddef>
#include <cstdio>
// jpeglib.h needs size_t and FILE; jerror.h needs the build options that jpeglib.h brings.
#include <jpeglib.h>
//
#include <jerror.h>

#include <algorithm>
#include <csetjmp>

#include "io/picture/internal/codec.h"
#include "io/picture/internal/exif.h"

namespace fathom::picture {
namespace {

// What the segments before the first scan say.
struct JpegHeader {
  bool has_frame = false;
  int64_t width = 0;
  int64_t height = 0;
  int components = 0;
  bool is_progressive = false;
  int orientation = 1;
};

enum Marker : uint8_t {
  kSof0 = 0xc0,
  kSof2 = 0xc2,
  kDht = 0xc4,
  kSof9 = 0xc9,
  kSof10 = 0xca,
  kJpg = 0xc8,
  kDac = 0xcc,
  kSof15 = 0xcf,
  kSoi = 0xd8,
  kEoi = 0xd9,
  kSos = 0xda,
  kApp1 = 0xe1,
};

bool is_frame(uint8_t marker) {
  return marker >= kSof0 && marker <= kSof15 && marker != kDht && marker != kJpg && marker != kDac;
}

Status read_frame(uint8_t marker, Bytes body, JpegHeader* header) {
  if (marker > kSof2 && marker != kSof9 && marker != kSof10) {
    return error(Code::kUnsupported,
                 "JPEG picture of a rare kind (frame marker {:02x}): lossless "
                 "and hierarchical JPEG are not read",
                 marker);
  }
  if (body.size() < 6) {
    return error(Code::kInvalidArgument, "JPEG picture: its frame header is cut");
  }
  if (body[0] != 8) {
    return error(Code::kUnsupported, "JPEG picture with {} bits a sample: 8 bits are read",
                 body[0]);
  }
  header->has_frame = true;
  header->height = body[1] << 8 | body[2];
  header->width = body[3] << 8 | body[4];
  header->components = body[5];
  header->is_progressive = marker == kSof2 || marker == kSof10;
  if (header->components != 1 && header->components != 3 && header->components != 4) {
    return error(Code::kUnsupported,
                 "JPEG picture with {} components: 1 (grey), 3 (colour) and 4 "
                 "(CMYK) are read",
                 header->components);
  }
  return Status::ok();
}

// Walks the segments up to the first scan.
Result<JpegHeader> read_header(Bytes bytes) {
  JpegHeader header;
  bool has_orientation = false;
  size_t at = 2;
  while (at + 4 <= bytes.size()) {
    if (bytes[at] != 0xff) {  // stray bytes between segments: libjpeg skips them too
      ++at;
      continue;
    }
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xff || marker == 0 || marker == kSoi || (marker >= 0xd0 && marker <= 0xd7)) {
      ++at;  // padding, or a mark without a body
      continue;
    }
    if (marker == kEoi) break;
    const size_t length = static_cast<size_t>(bytes[at + 2] << 8 | bytes[at + 3]);
    if (length < 2 || at + 2 + length > bytes.size()) {
      return error(Code::kInvalidArgument,
                   "JPEG picture: segment {:02x} at byte {} says {} bytes, "
                   "the file ends after {}",
                   marker, at, length, bytes.size() - at - 2);
    }
    const Bytes body = bytes.subspan(at + 4, length - 2);
    if (is_frame(marker) && !header.has_frame) FATHOM_TRY(read_frame(marker, body, &header));
    if (marker == kApp1 && !has_orientation && starts_with(body, "Exif")) {
      header.orientation = exif_orientation(body);
      has_orientation = true;
    }
    if (marker == kSos && header.has_frame) return header;
    at += 2 + length;
  }
  return error(Code::kInvalidArgument, "JPEG picture of {} bytes: no {} before its end",
               bytes.size(), header.has_frame ? "picture data" : "frame header");
}

// Everything a decode owns or reports; libjpeg leaves by longjmp, see run().
struct JpegReader {
  jpeg_error_mgr errors{};
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct jpeg{};
  Bytes bytes;
  Deadline deadline;
  bool is_late = false;
  int scans_max = 0;
  RgbImage image;
  std::vector<uint8_t> ink;  // one row of four-component samples

  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
};

JpegReader* reader_of(j_common_ptr jpeg) {
  return static_cast<JpegReader*>(jpeg->client_data);
}

[[noreturn]] void on_error(j_common_ptr jpeg) {
  JpegReader* reader = reader_of(jpeg);
  reader->errors.format_message(jpeg, reader->message);
  std::longjmp(reader->jump, 1);
}

// Level -1 is damage. What leaves pixels undefined stops the decode; the rest is let pass.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (reader_of(jpeg)->errors.msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_JPEG_EOF:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      on_error(jpeg);
    default:
      break;
  }
}

void on_output(j_common_ptr) {}

[[noreturn]] void stop(JpegReader* reader, const char* why) {
  std::snprintf(reader->message, sizeof(reader->message), "%s", why);
  std::longjmp(reader->jump, 1);
}

void on_progress(j_common_ptr jpeg) {
  JpegReader* reader = reader_of(jpeg);
  if (reader->jpeg.input_scan_number > reader->scans_max) stop(reader, "it has too many scans");
  if (is_past(reader->deadline)) {
    reader->is_late = true;
    stop(reader, "too slow");
  }
}

// One row of inverted CMYK samples to RGB, rounded as Pillow rounds: R = K' − K'·C/255.
void ink_row_to_rgb(const uint8_t* ink, int64_t width, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x) {
    const int paper = ink[4 * x + 3];  // 255 − K
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - ink[4 * x + c]) * paper + 128;
      rgb[3 * x + c] = static_cast<uint8_t>(paper - (((product >> 8) + product) >> 8));
    }
  }
}

void read_rows(JpegReader* reader) {
  jpeg_decompress_struct* jpeg = &reader->jpeg;
  const int64_t width = jpeg->output_width;
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t* out = &reader->image.pixels[static_cast<size_t>(jpeg->output_scanline * width * 3)];
    JSAMPROW row = reader->ink.empty() ? out : reader->ink.data();
    jpeg_read_scanlines(jpeg, &row, 1);
    if (!reader->ink.empty()) ink_row_to_rgb(reader->ink.data(), width, out);
  }
}

// The only function with a setjmp: it holds no object of its own. False: see reader->message.
bool run(JpegReader* reader) {
  jpeg_decompress_struct* jpeg = &reader->jpeg;
  jpeg->err = jpeg_std_error(&reader->errors);
  reader->errors.error_exit = on_error;
  reader->errors.emit_message = on_message;
  reader->errors.output_message = on_output;
  jpeg->client_data = reader;
  if (setjmp(reader->jump) != 0) return false;
  jpeg_create_decompress(jpeg);
  reader->progress.progress_monitor = on_progress;
  jpeg->progress = &reader->progress;
  jpeg_mem_src(jpeg, reader->bytes.data(), reader->bytes.size());
  jpeg_read_header(jpeg, TRUE);
  if (jpeg->image_width != reader->image.width || jpeg->image_height != reader->image.height) {
    stop(reader, "it has two sizes");
  }
  const bool is_ink = jpeg->num_components == 4;
  if (is_ink != !reader->ink.empty()) stop(reader, "it has two component counts");
  jpeg->out_color_space = is_ink ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(jpeg);
  read_rows(reader);
  jpeg_finish_decompress(jpeg);
  return true;
}

}  // namespace

Result<PictureInfo> probe_jpeg(Bytes bytes) {
  FATHOM_ASSIGN(const JpegHeader header, read_header(bytes));
  PictureInfo info{.format = PictureFormat::kJpeg, .width = header.width, .height = header.height};
  // Progressive pictures keep every coefficient, two bytes each; a turned picture exists twice.
  const int coefficients = header.is_progressive ? 2 * header.components : 0;
  const int turned = header.orientation != 1 ? 3 : 0;
  info.decode_bytes = memory_bytes(info.width, info.height, 3 + std::max(coefficients, turned));
  if (swaps_sides(header.orientation)) std::swap(info.width, info.height);
  return info;
}

Result<RgbImage> decode_jpeg(const DecodeRequest& request) {
  FATHOM_ASSIGN(const JpegHeader header, read_header(request.bytes));
  JpegReader reader;
  reader.bytes = request.bytes;
  reader.deadline = request.deadline;
  reader.scans_max = request.jpeg_scans_max;
  reader.image = make_image(header.width, header.height);
  if (header.components == 4) reader.ink.resize(static_cast<size_t>(header.width * 4));
  if (!run(&reader)) {
    if (reader.is_late) return deadline_error(PictureFormat::kJpeg, request.info);
    return error(Code::kInvalidArgument, "JPEG picture of {}x{} is damaged: {}", request.info.width,
                 request.info.height, reader.message);
  }
  return apply_orientation(std::move(reader.image), header.orientation);
}

}  // namespace fathom::picture
