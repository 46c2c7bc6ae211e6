// The picture decoders against Pillow's bytes (tests/data/pictures/expected.json), flat pictures of
// known colours, and files that must be refused. Run under address sanitizer as well. Cases IMG-1,
// IMG-2, IMG-4 and IMG-5 of tests/data/cases are among them.
#include "io/picture/decode.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "base/sha256.h"

namespace fathom {
namespace {

const std::string kData = FATHOM_SOURCE_DIR "/tests/data/pictures/";
const std::string kCorpus = FATHOM_SOURCE_DIR "/tests/fuzz/corpus/";

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  return {chars.begin(), chars.end()};
}

Result<RgbImage> decode(const std::string& name) {
  return decode_picture(read_file(kCorpus + name));
}

std::string digest(const RgbImage& image) {
  return sha256_hex({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
}

TEST(Decode, GivesPillowsBytes) {
  const std::vector<uint8_t> text = read_file(kData + "expected.json");
  const auto expected = parse_json({reinterpret_cast<const char*>(text.data()), text.size()});
  ASSERT_TRUE(expected.is_ok()) << expected.status().message();
  EXPECT_GE(expected->size(), 24U);
  for (const auto& [name, want] : expected->items()) {
    const Result<RgbImage> image = decode(name);
    ASSERT_TRUE(image.is_ok()) << name << ": " << image.status().message();
    EXPECT_EQ(image->width, want["width"]) << name;
    EXPECT_EQ(image->height, want["height"]) << name;
    EXPECT_EQ(digest(*image), want["sha256"]) << name;
  }
}

struct Spot {
  const char* file;
  int64_t x, y;
  int rgb[3];
  int tolerance;  // of JPEG's rounding; 0 where the format is exact
};

TEST(Decode, ColoursOfKnownPictures) {
  const Spot spots[] = {
      {"png/all_clear.png", 5, 5, {255, 255, 255}, 0},
      {"png/rgba_half.png", 5, 5, {255, 127, 127}, 1},
      {"png/palette_trns.png", 32, 32, {200, 0, 0}, 0},
      {"png/palette_trns.png", 0, 0, {255, 255, 255}, 0},
      {"png/rgb_trns_key.png", 1, 1, {200, 0, 0}, 0},
      {"png/rgb_trns_key.png", 62, 1, {255, 255, 255}, 0},
      {"jpeg/cmyk_adobe_inverted_cyan.jpg", 9, 9, {0, 255, 255}, 8},
      {"jpeg/ycck_adobe_cyan.jpg", 9, 9, {0, 255, 255}, 8},
      {"jpeg/cmyk_adobe_black.jpg", 9, 9, {0, 0, 0}, 0},
      {"jpeg/cmyk_adobe_white.jpg", 9, 9, {255, 255, 255}, 0},
      {"jpeg/cmyk_no_marker.jpg", 9, 9, {0, 0, 0}, 0},  // taken as inverted, as Pillow does
      {"jpeg/rgb_adobe_0_red.jpg", 9, 9, {255, 0, 0}, 3},
      {"jpeg/ycc_plain_red.jpg", 9, 9, {255, 0, 0}, 3},
      {"jpeg/size_13x7.jpg", 12, 6, {255, 0, 0}, 3},
      {"jpeg/gray_100.jpg", 9, 9, {100, 100, 100}, 0},
      {"jpeg/junk_after_end.jpg", 9, 9, {255, 0, 0}, 3},
      {"webp/alpha_bottom_clear.webp", 9, 9, {255, 0, 0}, 0},
      {"webp/alpha_bottom_clear.webp", 9, 60, {255, 255, 255}, 0},
      {"webp/moving_red_then_blue.webp", 9, 9, {255, 0, 0}, 0},
      {"webp/red_left_blue_right.webp", 60, 9, {0, 0, 255}, 0},
      {"webp/one_pixel.webp", 0, 0, {0, 255, 0}, 0},
      {"gif/moving_red_then_blue.gif", 9, 9, {255, 0, 0}, 0},
      {"gif/first_frame_smaller.gif", 16, 16, {255, 0, 0}, 0},
      {"gif/first_frame_smaller.gif", 2, 2, {255, 255, 255}, 0},
      {"gif/clear_background.gif", 16, 3, {255, 0, 0}, 0},
      {"gif/clear_background.gif", 2, 3, {255, 255, 255}, 0},
  };
  for (const Spot& spot : spots) {
    const Result<RgbImage> image = decode(spot.file);
    ASSERT_TRUE(image.is_ok()) << spot.file << ": " << image.status().message();
    for (int c = 0; c < 3; ++c) {
      const auto at = static_cast<size_t>((spot.y * image->width + spot.x) * 3 + c);
      EXPECT_NEAR(image->pixels[at], spot.rgb[c], spot.tolerance) << spot.file << " channel " << c;
    }
  }
}

struct Refusal {
  const char* file;
  Code code;
  const char* message_part;
};

TEST(Decode, RefusesDamagedAndLyingFilesByName) {
  const Refusal refusals[] = {
      {"png/lying_65536x65536.png", Code::kInvalidArgument, "65536x65536"},
      {"jpeg/lying_jpeg_65500x65500.jpg", Code::kInvalidArgument, "65500x65500"},
      {"jpeg/two_components.jpg", Code::kUnsupported, "2 components"},
      {"jpeg/segment_past_end.jpg", Code::kInvalidArgument, "segment e1 at byte 2"},
      {"jpeg/cut_half.jpg", Code::kInvalidArgument, "Premature end"},
      {"jpeg/no_end_mark.jpg", Code::kInvalidArgument, "Premature end"},
      {"webp/cut.webp", Code::kInvalidArgument, "1060 bytes, 1052"},
      {"webp/chunk_size_huge.webp", Code::kInvalidArgument, "WebP picture is damaged"},
      {"webp/only_header.webp", Code::kInvalidArgument, "header is cut"},
      {"gif/cut.gif", Code::kInvalidArgument, "GIF picture of 32x32 is damaged"},
      {"gif/no_frames.gif", Code::kInvalidArgument, "no frame"},
      {"gif/frame_outside_canvas.gif", Code::kInvalidArgument, "16x16 at 24,24"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<RgbImage> image = decode(refusal.file);
    ASSERT_FALSE(image.is_ok()) << refusal.file;
    EXPECT_EQ(image.status().code(), refusal.code) << refusal.file;
    EXPECT_NE(image.status().message().find(refusal.message_part), std::string::npos)
        << refusal.file << ": " << image.status().message();
  }
}

TEST(Decode, NamesFormatsThatAreNotRead) {
  const std::pair<std::string, std::string> kinds[] = {
      {"BM........", "BMP"},
      {"%PDF-1.4", "PDF"},
      {"<svg xmlns", "SVG"},
      {"MM\0*abcd", "TIFF"},
      {std::string("\0\0\0\x1c", 4) + "ftypavif", "AVIF"}};
  for (const auto& [head, name] : kinds) {
    std::string bytes = name == "TIFF" ? std::string("MM\0*abcd", 8) : head;
    const auto status =
        decode_picture({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).status();
    EXPECT_EQ(status.code(), Code::kUnsupported) << name;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_EQ(decode_picture({}).status().code(), Code::kInvalidArgument);
}

// Every file cut at every length: an error, never a picture with a made-up rest. What a GIF or PNG
// has after its last pixel (the end mark) and a JPEG's junk may be missing in part only.
TEST(Decode, RefusesEveryCutBeforeTheLastPixel) {
  for (const char* file :
       {"png/pillow_rgb.png", "png/raw_rgba16_interlaced.png", "jpeg/pillow_420.jpg",
        "jpeg/pillow_progressive.jpg", "webp/pillow_lossy.webp", "webp/pillow_lossless.webp"}) {
    const std::vector<uint8_t> whole = read_file(kCorpus + file);
    for (size_t length = 0; length < whole.size(); ++length) {
      const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<int64_t>(length));
      EXPECT_FALSE(decode_picture(cut).is_ok()) << file << " cut to " << length;
    }
  }
}

TEST(Decode, ProbeAgreesWithDecode) {
  for (const char* kind : {"png", "jpeg", "webp", "gif"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus + kind)) {
      const std::vector<uint8_t> bytes = read_file(entry.path());
      const Result<RgbImage> image = decode_picture(bytes);
      if (!image.is_ok()) continue;
      const Result<PictureInfo> info = probe_picture(bytes);
      ASSERT_TRUE(info.is_ok()) << entry.path();
      EXPECT_EQ(info->width, image->width) << entry.path();
      EXPECT_EQ(info->height, image->height) << entry.path();
      EXPECT_GE(info->decode_bytes, image->width * image->height * 3) << entry.path();
    }
  }
}

TEST(Decode, EachLimitIsCheckedFromTheHeader) {
  const PictureInfo info{
      .format = PictureFormat::kPng, .width = 300, .height = 200, .decode_bytes = 1000};
  EXPECT_TRUE(check_picture_limits(info, {}).is_ok());
  const PictureLimits limits[] = {
      {.side_max = 299}, {.pixels_max = 59'999}, {.ratio_max = 1}, {.decode_bytes_max = 999}};
  for (const PictureLimits& limit : limits) {
    EXPECT_EQ(check_picture_limits(info, limit).code(), Code::kInvalidArgument);
  }
}

TEST(Decode, EncodedBytesAndTimeAreLimited) {
  const std::vector<uint8_t> bytes = read_file(kCorpus + "png/pillow_rgb.png");
  EXPECT_EQ(decode_picture(bytes, {.encoded_bytes_max = 10}).status().code(),
            Code::kInvalidArgument);
  for (const char* file :
       {"png/pillow_rgb.png", "jpeg/pillow_420.jpg", "webp/pillow_lossy.webp", "gif/pillow.gif"}) {
    const PictureLimits no_time{.decode_time_max = std::chrono::milliseconds(0)};
    EXPECT_EQ(decode_picture(read_file(kCorpus + file), no_time).status().code(),
              Code::kDeadlineExceeded)
        << file;
  }
}

TEST(Decode, ProgressiveScansAreLimited) {
  const std::vector<uint8_t> bytes = read_file(kCorpus + "jpeg/pillow_progressive.jpg");
  const auto status = decode_picture(bytes, {.jpeg_scans_max = 2}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("too many scans"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace fathom
