// Headers that are wrong, each in one way (case FMT-4 of tests/data/cases and its neighbours), and
// the round trip of our own writer.
#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "io/safetensors_writer.h"

namespace fathom {
namespace {

using testing::HasSubstr;

std::string temp_path(const std::string& name) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string unique = std::string(test->test_suite_name()) + "." + test->name() + "." + name;
  std::ranges::replace(unique, '/', '_');
  return testing::TempDir() + unique;
}

// A file with this header text, whose length field says `length` (default: the truth).
std::string file_text(const std::string& header, size_t data_bytes = 16,
                      std::optional<uint64_t> length = std::nullopt) {
  const uint64_t size = length.value_or(header.size());
  std::string text(sizeof(size), '\0');
  std::memcpy(text.data(), &size, sizeof(size));
  return text + header + std::string(data_bytes, '\x3f');
}

std::string tensor(const std::string& shape = "[4]", const std::string& offsets = "[0,16]",
                   const std::string& dtype = "\"F32\"", const std::string& name = "w") {
  return fmt::format(R"("{}":{{"dtype":{},"shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

std::string in_braces(const std::string& inside) {
  return "{" + inside + "}";
}

Result<std::unique_ptr<SafetensorsFile>> open_text(const std::string& text) {
  const std::string path = temp_path("file.safetensors");
  std::ofstream(path, std::ios::binary) << text;
  return SafetensorsFile::open(path);
}

struct BadHeader {
  const char* name;
  std::string text;       // of the whole file
  const char* complaint;  // part of the message
};

class SafetensorsHeader : public testing::TestWithParam<BadHeader> {};

TEST_P(SafetensorsHeader, WrongOnesAreRefusedByName) {
  const auto file = open_text(GetParam().text);
  ASSERT_FALSE(file.is_ok());
  EXPECT_THAT(file.status().message(), HasSubstr("file.safetensors"));
  EXPECT_THAT(file.status().message(), HasSubstr(GetParam().complaint));
}

const std::string kNested = std::string(200'000, '[') + std::string(200'000, ']');

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsHeader,
    testing::Values(
        BadHeader{"empty_file", "", "too few"},
        BadHeader{"seven_bytes", std::string(7, '\0'), "too few"},
        BadHeader{"length_zero", file_text("", 0), "does not begin"},
        BadHeader{"length_past_file", file_text(in_braces(tensor()), 16, 1 << 20), "cut short"},
        BadHeader{"length_2_63", file_text(in_braces(tensor()), 16, uint64_t{1} << 63),
                  "header length 9223372036854775808"},
        BadHeader{"length_all_ones", file_text(in_braces(tensor()), 16, ~uint64_t{0}),
                  "header length"},
        BadHeader{"leading_space", file_text(" " + in_braces(tensor())), "does not begin"},
        BadHeader{"byte_order_mark", file_text("\xef\xbb\xbf" + in_braces(tensor())),
                  "does not begin"},
        BadHeader{"not_utf8", file_text(in_braces(tensor("[4]", "[0,16]", "\"F32\"", "\xff"))),
                  "not valid JSON"},
        BadHeader{"not_closed", file_text("{" + tensor()), "not valid JSON"},
        BadHeader{"junk_after_object", file_text(in_braces(tensor()) + "{}"), "not valid JSON"},
        BadHeader{"top_is_list", file_text("[{}]", 0), "does not begin"},
        BadHeader{"top_is_number", file_text("7", 0), "does not begin"},
        BadHeader{"nested", file_text(R"({"__metadata__":)" + kNested + "}", 0), "nested deeper"},
        BadHeader{"metadata_is_number", file_text(R"({"__metadata__":7})", 0), "__metadata__"},
        BadHeader{"same_name_twice",
                  file_text(in_braces(tensor("[2]", "[0,8]") + "," + tensor("[2]", "[8,16]"))),
                  "\"w\" appears twice"},
        BadHeader{"entry_is_list", file_text(R"({"w":[1]})", 0), "wanted an object"},
        BadHeader{"field_missing", file_text(R"({"w":{"dtype":"F32","shape":[4]}})"),
                  "data_offsets is missing"},
        BadHeader{"dtype_unknown", file_text(in_braces(tensor("[4]", "[0,16]", "\"F7\""))),
                  "dtype \"F7\""},
        BadHeader{"dtype_number", file_text(in_braces(tensor("[4]", "[0,16]", "5"))),
                  "dtype: wanted a text"},
        BadHeader{"shape_larger_than_bytes", file_text(in_braces(tensor("[1000,1000]"))),
                  "F32 [1000, 1000] wants 4000000 bytes, data_offsets give 16"},
        BadHeader{"shape_smaller_than_bytes", file_text(in_braces(tensor("[3]"))),
                  "wants 12 bytes"},
        BadHeader{"shape_wraps", file_text(in_braces(tensor("[4294967296,4294967296]"))),
                  "does not fit"},
        BadHeader{"shape_negative", file_text(in_braces(tensor("[-4]"))), "shape: wanted whole"},
        BadHeader{"shape_text", file_text(in_braces(tensor("\"4\""))), "shape: wanted a list"},
        BadHeader{"shape_long", file_text(in_braces(tensor("[1,1,1,1,1,1,1,1,4]"))),
                  "at most 8 numbers"},
        BadHeader{"offsets_reversed", file_text(in_braces(tensor("[4]", "[16,0]"))),
                  "run backwards"},
        BadHeader{"offsets_negative", file_text(in_braces(tensor("[4]", "[-16,0]"))),
                  "data_offsets: wanted whole"},
        BadHeader{"offsets_fraction", file_text(in_braces(tensor("[4]", "[0.0,16.0]"))),
                  "data_offsets: wanted whole"},
        BadHeader{"offsets_text", file_text(in_braces(tensor("[4]", R"(["0","16"])"))),
                  "data_offsets: wanted whole"},
        BadHeader{"offsets_one", file_text(in_braces(tensor("[4]", "[0]"))), "wanted 2 numbers"},
        BadHeader{"offsets_three", file_text(in_braces(tensor("[4]", "[0,8,16]"))),
                  "at most 2 numbers"},
        BadHeader{"offsets_2_64",
                  file_text(in_braces(tensor("[4611686018427387904]", "[0,18446744073709551616]"))),
                  "does not fit 63 bits"},
        BadHeader{"past_end", file_text(in_braces(tensor("[16]", "[0,64]"))), "cut short"},
        BadHeader{"starts_at_4", file_text(in_braces(tensor("[3]", "[4,16]"))), "hole"},
        BadHeader{"hole",
                  file_text(in_braces(tensor("[1]", "[0,4]") + "," +
                                      tensor("[1]", "[12,16]", "\"F32\"", "v"))),
                  "\"v\" leaves a hole"},
        BadHeader{"overlap",
                  file_text(in_braces(tensor() + "," + tensor("[2]", "[8,16]", "\"F32\"", "v"))),
                  "\"v\" overlaps"},
        BadHeader{"bytes_after_data", file_text(in_braces(tensor()), 20),
                  "4 bytes follow the last tensor"}),
    [](const auto& info) { return info.param.name; });

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const std::vector<float> floats = {1, -2, 3.5F};
  const std::vector<uint8_t> bytes = {7, 8, 9, 10, 11};
  const TensorToWrite tensors[] = {
      {"bytes", DType::kU8, {5}, std::as_bytes(std::span(bytes))},
      {"floats", DType::kF32, {3, 1}, std::as_bytes(std::span(floats))},
      {"none", DType::kF32, {0, 4}, {}}};
  const std::string path = temp_path("file.safetensors");
  ASSERT_TRUE(write_safetensors(path, tensors).is_ok());

  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ((*file)->tensors().size(), 3U);
  const auto found = (*file)->span_of<float>("floats", DType::kF32);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_THAT(*found, testing::ElementsAreArray(floats));
  EXPECT_THAT((*file)->find("floats")->shape, testing::ElementsAre(3, 1));
  EXPECT_THAT(*(*file)->span_of<uint8_t>("bytes", DType::kU8), testing::ElementsAreArray(bytes));
  EXPECT_EQ((*file)->find("none")->bytes, 0);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(Safetensors, SpanOfNamesWhatDoesNotFit) {
  const auto file = open_text(file_text(in_braces(tensor())));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_THAT((*file)->span_of<float>("x", DType::kF32).status().message(), HasSubstr("\"x\""));
  EXPECT_THAT((*file)->span_of<int32_t>("w", DType::kI32).status().message(),
              HasSubstr("wanted I32, found F32"));
}

TEST(Safetensors, WriterRefusesWhatDoesNotFit) {
  const float value = 1;
  const auto data = std::as_bytes(std::span(&value, 1));
  const std::string path = temp_path("file.safetensors");
  const TensorToWrite too_small[] = {{"a", DType::kF32, {2}, data}};
  EXPECT_THAT(write_safetensors(path, too_small).message(), HasSubstr("\"a\""));
  const TensorToWrite twice[] = {{"a", DType::kF32, {1}, data}, {"a", DType::kF32, {1}, data}};
  EXPECT_THAT(write_safetensors(path, twice).message(), HasSubstr("twice"));
  EXPECT_FALSE(std::filesystem::exists(path));
  const TensorToWrite good[] = {{"a", DType::kF32, {1}, data}};
  EXPECT_EQ(write_safetensors("/nonexistent/x", good).code(), Code::kDataLoss);
}

TEST(Safetensors, MissingFileAndFolderAreNamed) {
  EXPECT_EQ(SafetensorsFile::open(temp_path("none")).status().code(), Code::kNotFound);
  EXPECT_THAT(SafetensorsFile::open(testing::TempDir()).status().message(), HasSubstr("folder"));
}

}  // namespace
}  // namespace fathom
