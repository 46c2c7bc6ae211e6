#include "memory/mapped_row_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Four rows of 64 codes and 2 scales, as a file.
class MappedRowTableTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 4;
  static constexpr int64_t kCols = 64;

  MappedRowTable make_table() {
    const std::string path = testing::TempDir() + "row_table.bin";
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes_.data()),
              static_cast<std::streamsize>(bytes_.size()));
    out.close();
    file_ = std::move(MappedFile::open(path)).value();
    const auto* data = reinterpret_cast<const uint8_t*>(file_->all().data());
    return {"layers.1.engram.embed", file_.get(), kRows, kCols, data, data + kRows * kCols};
  }

  std::vector<uint8_t> bytes_ = [] {
    std::vector<uint8_t> bytes(kRows * kCols + kRows * 2);
    for (int64_t i = 0; i < kRows * kCols; ++i) bytes[static_cast<size_t>(i)] = i / kCols;
    std::iota(bytes.begin() + kRows * kCols, bytes.end(), uint8_t{100});
    return bytes;
  }();
  std::unique_ptr<MappedFile> file_;
  std::vector<uint8_t> codes_ = std::vector<uint8_t>(2 * kCols);
  std::vector<uint8_t> scales_ = std::vector<uint8_t>(2 * 2);
};

TEST_F(MappedRowTableTest, RowsComeInTheOrderAskedFor) {
  const MappedRowTable table = make_table();
  const int64_t ids[] = {3, 1};
  table.prefetch(ids);
  ASSERT_TRUE(table.gather(ids, codes_, scales_).is_ok());
  EXPECT_EQ(codes_[0], 3);
  EXPECT_EQ(codes_[kCols], 1);
  EXPECT_THAT(scales_, ElementsAre(106, 107, 102, 103));
}

TEST_F(MappedRowTableTest, ANanIsNeverHandedOut) {
  bytes_[kRows * kCols + 2 * 2 + 1] = 255;
  bytes_[1 * kCols + 7] = 0xFF;
  const MappedRowTable table = make_table();
  for (int64_t row : {1, 2}) {
    const int64_t ids[] = {0, row};
    const Status status = table.gather(ids, codes_, scales_);
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("layers.1.engram.embed row {}", row)));
    EXPECT_THAT(status.message(), HasSubstr("row_table.bin"));
  }
  const int64_t good[] = {0, 3};
  EXPECT_TRUE(table.gather(good, codes_, scales_).is_ok());
}

TEST_F(MappedRowTableTest, ARowThatDoesNotExistIsABug) {
  const MappedRowTable table = make_table();
  const int64_t ids[] = {0, 4};
  EXPECT_DEATH((void)table.gather(ids, codes_, scales_), "row 4 of 4");
}

}  // namespace
}  // namespace fathom
