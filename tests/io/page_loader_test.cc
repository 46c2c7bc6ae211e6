#include "io/page_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

namespace fathom {
namespace {

std::unique_ptr<MappedFile> file_of(const std::string& name, size_t bytes) {
  const std::string path = testing::TempDir() + "page_loader_" + name;
  std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.is_ok()) << file.status().message();
  return std::move(file).value();
}

TEST(PageLoader, ReportsEveryByteOnce) {
  const auto a = file_of("a", 20 << 20);
  const auto b = file_of("b", 4097);
  const FileRange ranges[] = {{a.get(), 5, (20 << 20) - 5}, {b.get(), 0, 4097}};
  for (int threads : {1, 3}) {
    LoadProgress last;
    const Status status = load_pages(
        ranges, {.thread_count = threads, .progress = [&](const LoadProgress& p) { last = p; }});
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(last.bytes_total, (20 << 20) - 5 + 4097);
    EXPECT_EQ(last.bytes_done, last.bytes_total);
  }
}

TEST(PageLoader, StopsWhenAsked) {
  const auto a = file_of("cancel", 1 << 20);
  const std::atomic<bool> cancel = true;
  const FileRange ranges[] = {{a.get(), 0, 1 << 20}};
  EXPECT_EQ(load_pages(ranges, {.cancel = &cancel}).code(), Code::kCancelled);
}

TEST(PageLoader, AFileThatBecameShorterIsAnErrorThatNamesIt) {
  const auto a = file_of("short", 1 << 20);
  std::filesystem::resize_file(a->path(), 4096);
  const FileRange ranges[] = {{a.get(), 0, 1 << 20}};
  const Status status = load_pages(ranges, {});
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("page_loader_short"));
}

TEST(PageLoader, VisitsEveryPieceOnceWithItsBytes) {
  const auto a = file_of("visit", 20 << 20);
  const FileRange ranges[] = {{a.get(), 3, 17 << 20}, {a.get(), 19 << 20, 100}};
  std::mutex mu;
  std::vector<int64_t> bytes(2);
  std::set<int64_t> offsets;
  const Status status =
      visit_pages(ranges, {.thread_count = 3}, [&](size_t range, const FileRange& piece) {
        const std::lock_guard lock(mu);
        EXPECT_EQ(piece.file->all()[static_cast<size_t>(piece.offset)], std::byte{'x'});
        EXPECT_TRUE(offsets.insert(piece.offset).second);
        bytes[range] += piece.bytes;
      });
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_THAT(bytes, testing::ElementsAre(17 << 20, 100));
  EXPECT_EQ(a->all()[5 << 20], std::byte{'x'});  // given up, and there again when touched
}

TEST(PageLoader, NoRangesIsNoWork) {
  EXPECT_TRUE(load_pages({}, {}).is_ok());
}

TEST(PageLoader, NearRangesAreJoinedAndFarOnesAreNot) {
  const auto a = file_of("merge_a", 100);
  const auto b = file_of("merge_b", 100);
  const auto merged =
      merge_ranges({{b.get(), 0, 10}, {a.get(), 50, 10}, {a.get(), 0, 10}, {a.get(), 12, 8}}, 4);
  ASSERT_EQ(merged.size(), 3U);
  EXPECT_EQ(merged[0].file, a.get());
  EXPECT_EQ(merged[0].offset, 0);
  EXPECT_EQ(merged[0].bytes, 20);
  EXPECT_EQ(merged[1].offset, 50);
  EXPECT_EQ(merged[2].file, b.get());
}

}  // namespace
}  // namespace fathom
