// Topic: the released model's layout at full size, with holes for data, opens, and inspect prints
// the numbers of spec §9.2. Slow (seconds) and large (510 GB of holes), hence the suite's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "model/deepseek_v41/inspect.h"

namespace fathom::v41 {
namespace {

namespace fs = std::filesystem;

// Whether a file of the largest shard's size can be made here without that many blocks.
bool disk_holds_sparse_files(const fs::path& directory) {
  constexpr int64_t kLargestShardBytes = 101'537'926'640;
  constexpr int64_t kBlockBytes = 512;  // of st_blocks
  const fs::path probe = directory / "probe";
  std::ofstream(probe).close();
  struct stat info = {};
  return ::truncate(probe.c_str(), kLargestShardBytes) == 0 && ::stat(probe.c_str(), &info) == 0 &&
         info.st_blocks * kBlockBytes < (1 << 20);
}

class SlowSparse : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = fs::path(testing::TempDir()) / fmt::format("fathom_sparse_{}", ::getpid());
    fs::create_directories(directory_);
    if (!disk_holds_sparse_files(directory_)) {
      reason_ = "the disk of " + directory_.string() + " cannot hold sparse files of 100 GB";
    } else if (std::system(fmt::format("python3 {}/tools/make_sparse_v41.py {} > {}/log 2>&1",
                                       FATHOM_SOURCE_DIR, directory_.string(), directory_.string())
                               .c_str()) != 0) {
      reason_ = "tools/make_sparse_v41.py failed: is python3 there?";
    }
  }
  static void TearDownTestSuite() { fs::remove_all(directory_); }
  void SetUp() override {
    if (!reason_.empty()) GTEST_SKIP() << "SKIP: " << reason_;
  }

  static fs::path directory_;
  static std::string reason_;  // why the suite cannot run
};

fs::path SlowSparse::directory_;
std::string SlowSparse::reason_;

int64_t of(const Json& list, const std::string& name, const std::string& field) {
  for (const Json& item : list)
    if (item["name"] == name) return item[field].get<int64_t>();
  ADD_FAILURE() << name << " is not listed";
  return -1;
}

TEST_F(SlowSparse, InspectPrintsTheNumbersOfTheReleasedModel) {
  const auto result = run_inspect(directory_.string(), {.is_json = true, .reading = {}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  const Json report = *parse_json(result->output);
  EXPECT_EQ(report["shards"], 48);
  EXPECT_EQ(report["tensors"], 96085);
  EXPECT_EQ(report["payload_bytes"], 510'286'023'000);
  EXPECT_EQ(report["parameters"], 763'205'315'794);
  EXPECT_EQ(report["context_tokens"], 1'048'576);
  EXPECT_NEAR(report["active_parameters"].get<double>(), 16.13e9, 0.005e9);

  const Json& parts = report["parts"];
  EXPECT_EQ(of(parts, "backbone without routed experts", "tensors"), 1243);
  EXPECT_EQ(of(parts, "routed experts", "tensors"), 92160);
  EXPECT_EQ(of(parts, "Engram", "tensors"), 12);
  EXPECT_EQ(of(parts, "drafts (DSpark)", "tensors"), 2401);
  EXPECT_EQ(of(parts, "vision, aligner, delimiters", "tensors"), 266);
  EXPECT_EQ(of(parts, "embedding, norm, head", "tensors"), 3);

  const Json& dtypes = report["dtypes"];
  EXPECT_EQ(of(dtypes, "BF16", "parameters"), 1'976'441'856);
  EXPECT_EQ(of(dtypes, "F32", "parameters"), 42'307'282);
  EXPECT_EQ(of(dtypes, "F8_E4M3", "parameters"), 204'015'223'296);
  EXPECT_EQ(of(dtypes, "FP4 (two in an I8)", "parameters"), 557'171'343'360);
  EXPECT_EQ(of(dtypes, "F8_E8M0", "scales"), 23'563'015'184);
  EXPECT_EQ(report["layers"].size(), 40U);
  EXPECT_EQ(report["layers"][36]["role"], "reindex");
  ASSERT_EQ(report["notices"].size(), 1U) << "only what was left out of it, the tokenizer";
  EXPECT_NE(report["notices"][0].get<std::string>().find("tokenizer.json"), std::string::npos);
}

// Opening reads headers and small tensors. Its memory must not follow the 510 GB it names.
TEST_F(SlowSparse, OpeningNeedsLittleMemory) {
  const auto checkpoint = Checkpoint::open(directory_.string());
  ASSERT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  std::ifstream status("/proc/self/status");
  int64_t kilobytes = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) kilobytes = std::atoll(line.c_str() + 6);
  // 273 MB are measured: 96,085 names in the index and in the headers, 170 MB of small tensors.
  EXPECT_GT(kilobytes, 0);
  EXPECT_LT(kilobytes, 600'000);
}

}  // namespace
}  // namespace fathom::v41
