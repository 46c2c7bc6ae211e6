#include "io/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/mapping_fault.h"
#include "io/read_file.h"

namespace fathom {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& name, size_t bytes) {
  const std::string path = testing::TempDir() + "mapped_file_" + name;
  std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
  return path;
}

TEST(MappedFile, ShowsTheWholeFile) {
  const auto file = MappedFile::open(file_of("whole", 5000));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ((*file)->bytes(), 5000);
  EXPECT_EQ((*file)->name(), "mapped_file_whole");
  for (std::byte b : (*file)->all()) ASSERT_EQ(b, std::byte{'x'});
}

TEST(MappedFile, AnEmptyFileIsAFile) {
  const auto file = MappedFile::open(file_of("empty", 0));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_TRUE((*file)->all().empty());
}

TEST(MappedFile, WhatIsNoRegularFileIsNamed) {
  EXPECT_EQ(MappedFile::open("/nonexistent/file").status().code(), Code::kNotFound);
  EXPECT_THAT(MappedFile::open(testing::TempDir()).status().message(), HasSubstr("found a folder"));
  EXPECT_THAT(MappedFile::open("/dev/null").status().message(), HasSubstr("device or pipe"));
  const std::string pipe = testing::TempDir() + "mapped_file_pipe";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(pipe).status().message(), HasSubstr("device or pipe"))
      << "and nobody has to write to it first";
}

TEST(MappedFile, AReplacedFileKeepsItsOldContent) {
  const std::string path = file_of("replaced", 100);
  const auto file = MappedFile::open(path);
  std::ofstream(path + ".new", std::ios::binary) << "new";
  std::filesystem::rename(path + ".new", path);
  EXPECT_EQ((*file)->all().back(), std::byte{'x'});
}

TEST(MappedFile, AFileThatBecomesShorterEndsTheProcessWithItsName) {
  const std::string path = file_of("shorter", 1 << 20);
  const auto touch_lost_page = [&] {
    explain_mapping_faults();
    const auto file = MappedFile::open(path);
    std::filesystem::resize_file(path, 4096);
    const volatile std::byte* data = (*file)->all().data();
    (void)data[1 << 19];
  };
  EXPECT_EXIT(touch_lost_page(), testing::ExitedWithCode(kMappingFaultExitCode),
              "mapped_file_shorter: the file became shorter");
}

TEST(ReadFile, RefusesMoreThanItsBound) {
  const std::string path = file_of("bound", 11);
  EXPECT_EQ(read_file(path, 11)->size(), 11U);
  EXPECT_THAT(read_file(path, 10).status().message(), HasSubstr("has 11 bytes, at most 10"));
  EXPECT_EQ(read_file(path + ".none", 10).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace fathom
