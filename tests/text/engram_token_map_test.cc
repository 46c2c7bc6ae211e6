#include "text/engram_token_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/sha256.h"
#include "tests/text/test_data.h"

namespace fathom::text {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kReleasedDistinct = 99'092;

std::string sha256_of(const EngramTokenMap& map) {
  return sha256_hex({reinterpret_cast<const char*>(map.compressed_of.data()),
                     map.compressed_of.size() * sizeof(int32_t)});
}

TEST(EngramTokenMap, EqualsTheReferenceOnTheReleasedTokenizers) {
  const Json golden = read_golden("tokenizer/tables.json").at("engram");
  for (const std::string version : {"v41", "v4"}) {
    const EngramTokenMap map = build_engram_token_map(released_tokenizer(version));
    EXPECT_EQ(map.distinct_count, golden.at("distinct").get<int64_t>());
    EXPECT_EQ(map.distinct_count, kReleasedDistinct);
    EXPECT_EQ(sha256_of(map), golden.at("map_sha256").get<std::string>());
    EXPECT_EQ(map.compressed_of[2], golden.at("of_pad_2").get<int32_t>());
    for (const auto& [spelling, row] : golden.at("examples").items())
      EXPECT_EQ(map.compressed_of[row.at("id").get<int>()], row.at("engram").get<int32_t>())
          << spelling;
  }
}

TEST(EngramTokenMap, JoinsTheWordsOfTheGoldenCheckpoints) {
  const EngramTokenMap map = build_engram_token_map(*stub_tokenizer());
  EXPECT_EQ(map.distinct_count, 256);
  for (int id = 0; id < 512; ++id) EXPECT_EQ(map.compressed_of[id], id / 2);
}

TEST(EngramTokenMap, RefusesACountThatTheConfigDoesNotName) {
  const auto map = load_engram_token_map(*stub_tokenizer(), "", 255);
  EXPECT_EQ(map.status().code(), Code::kDataLoss);
  EXPECT_THAT(map.status().message(), HasSubstr("256"));
  EXPECT_THAT(map.status().message(), HasSubstr("255"));
}

class EngramCache : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / fmt::format("fathom-engram-{}", getpid());
    fs::remove_all(dir_);
    tokenizer_ = stub_tokenizer();
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string cache_path() const {
    return (dir_ / ("engram-" + tokenizer_->file_sha256() + ".map")).string();
  }
  std::vector<int32_t> load() const {
    auto map = load_engram_token_map(*tokenizer_, dir_.string(), 256);
    EXPECT_TRUE(map) << map.status().message();
    return map ? map->compressed_of : std::vector<int32_t>();
  }

  fs::path dir_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(EngramCache, GivesBackWhatWasWritten) {
  const auto built = load();
  ASSERT_TRUE(fs::exists(cache_path()));
  EXPECT_EQ(load(), built);
  int file_count = 0;
  for (const auto& entry : fs::directory_iterator(dir_)) file_count += entry.exists();
  EXPECT_EQ(file_count, 1) << "no scratch file is left";
}

TEST_F(EngramCache, ADamagedFileIsMadeAgain) {
  const auto built = load();
  const std::string whole = read_test_file(cache_path());
  std::string flipped = whole;
  flipped[200] = static_cast<char>(flipped[200] ^ 1);
  for (const std::string& bytes : {std::string(), whole.substr(0, 50),
                                   whole.substr(0, whole.size() - 1), whole + "x", flipped}) {
    std::ofstream(cache_path(), std::ios::binary) << bytes;
    EXPECT_EQ(load(), built) << bytes.size();
    EXPECT_EQ(read_test_file(cache_path()), whole) << bytes.size();
  }
}

TEST_F(EngramCache, AFolderThatCannotBeMadeIsNoError) {
  std::ofstream(dir_.string()) << "a file stands here";
  EXPECT_EQ(load().size(), 512u);
}

}  // namespace
}  // namespace fathom::text
