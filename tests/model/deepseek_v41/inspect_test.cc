#include "model/deepseek_v41/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/sha256.h"
#include "io/read_file.h"
#include "tests/model/deepseek_v41/damaged_checkpoint.h"

namespace fathom::v41 {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string golden(const std::string& name) {
  return std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + name + "/checkpoint";
}

Json inspected(const std::string& directory, bool is_deep = false) {
  const auto result = run_inspect(directory, {.is_json = true, .is_deep = is_deep, .reading = {}});
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? *parse_json(result->output) : Json();
}

TEST(Inspect, PartsAndDtypesBothAddUpToTheFile) {
  const Json report = inspected(golden("v41-tiny"));
  for (const char* list : {"parts", "dtypes"}) {
    int64_t tensors = 0;
    int64_t parameters = 0;
    int64_t bytes = 0;
    for (const Json& item : report[list]) {
      tensors += item["tensors"].get<int64_t>();
      parameters += item["parameters"].get<int64_t>();
      bytes += item["bytes"].get<int64_t>();
    }
    EXPECT_EQ(tensors, 860) << list;  // as the golden's README counts them
    EXPECT_EQ(report["tensors"], tensors) << list;
    EXPECT_EQ(report["parameters"], parameters) << list;
    EXPECT_EQ(report["payload_bytes"], bytes) << list;
  }
}

TEST(Inspect, LayersHaveTheRolesOfTheConfig) {
  const Json report = inspected(golden("v41-tiny"));
  std::vector<std::string> roles;
  for (const Json& layer : report["layers"]) roles.push_back(layer["role"]);
  EXPECT_THAT(roles,
              ElementsAre("window", "full", "reuse", "full", "full", "reuse", "reindex", "reuse"));
  EXPECT_EQ(report["layers"][7]["kv_source"], 4);
  EXPECT_EQ(report["layers"][7]["index_source"], 6);
  EXPECT_TRUE(report["layers"][4]["is_candidate_source"]);
  EXPECT_TRUE(report["layers"][3]["has_engram"]);
}

TEST(Inspect, TextNamesWhatIsMissing) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.forget_tensors([](const std::string& name) { return name.starts_with("mtp."); });
  copy.edit_json("config.json", [](Json& json) { json["new_switch"] = 1; });
  const auto result = run_inspect(copy.directory(), {});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_THAT(result->output, AllOf(HasSubstr("no drafts"), HasSubstr("new_switch"),
                                    HasSubstr("context 256 tokens")));
}

TEST(Inspect, DeepFindsNothingInAGoodCheckpoint) {
  const auto result =
      run_inspect(golden("v41-wide"), {.is_json = true, .is_deep = true, .reading = {}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_TRUE(result->is_good);
  EXPECT_EQ((*parse_json(result->output))["deep"]["problem_count"], 0);
}

TEST(Inspect, DeepFindsWhatOpeningDoesNotRead) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.edit_tensor("embed.weight",
                   [](RawTensor& t) { set_element<uint16_t>(&t, 1234, 0x7F80); });  // inf
  copy.edit_tensor("layers.4.ffn.experts.1.w2.scale",
                   [](RawTensor& t) { set_element<uint8_t>(&t, 11, 255); });
  copy.edit_tensor("layers.3.attn.wkv.weight",
                   [](RawTensor& t) { set_element<uint8_t>(&t, 77, 0xFF); });  // NaN
  const auto result = run_inspect(copy.directory(), {.is_deep = true, .reading = {}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_FALSE(result->is_good);
  EXPECT_THAT(result->output,
              AllOf(HasSubstr("3 problems"),
                    HasSubstr("tensor embed.weight: wanted finite numbers, element 1234"),
                    HasSubstr("experts.1.w2.scale: wanted scale bytes from 0 to 254, element 11"),
                    HasSubstr("wkv.weight: wanted finite numbers, element 77")));
}

TEST(Inspect, DeepComparesTheChecksumsThatComeWithTheModel) {
  const DamagedCheckpoint copy("v41-tiny");
  const std::string shard = copy.shard_of("embed.weight");
  const std::string good = sha256_hex(*read_file(copy.path("config.json"), 1 << 20));
  const std::string bad(64, 'a');
  for (bool is_json : {false, true}) {
    copy.replace("SHA256SUMS", fmt::format("{}  config.json\n{}  {}\n", good, bad, shard));
    if (is_json) {
      copy.remove("SHA256SUMS");
      copy.replace("SHA256.json", Json{{"config.json", good}, {shard, bad}}.dump());
    }
    const auto result = run_inspect(copy.directory(), {.is_deep = true, .reading = {}});
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_FALSE(result->is_good);
    EXPECT_THAT(result->output,
                AllOf(HasSubstr(fmt::format("{}: wanted SHA-256 {}, found ", shard, bad)),
                      HasSubstr("SHA-256 as listed: config.json")));
  }
}

TEST(Inspect, AModelThatDoesNotOpenIsAnError) {
  EXPECT_FALSE(run_inspect("/nonexistent", {}).is_ok());
}

}  // namespace
}  // namespace fathom::v41
