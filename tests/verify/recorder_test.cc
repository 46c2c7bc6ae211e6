#include "verify/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "io/safetensors_writer.h"
#include "verify/cases.h"
#include "verify/report.h"
#include "verify/tap_inputs.h"

namespace fathom::verify {
namespace {

// A case with two taps of layer 0, qr [2, 4] and its input attn_norm [2, 4], both F32.
class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("fathom_recorder_" + std::to_string(::getpid()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    for (size_t i = 0; i < 8; ++i) values_.push_back(static_cast<float>(i) + 0.5F);
    std::vector<TensorToWrite> tensors;
    for (const char* name : {"layers.0.attn_norm", "layers.0.qr"})
      tensors.push_back({.name = name,
                         .dtype = DType::kF32,
                         .shape = {2, 4},
                         .data = std::as_bytes(std::span(values_))});
    ASSERT_TRUE(write_safetensors(folder_ / "case.safetensors", tensors).is_ok());
    auto golden =
        GoldenCase::open(folder_, "case", {{"kind", "taps"}, {"file", "case.safetensors"}});
    ASSERT_TRUE(golden.is_ok()) << golden.status().message();
    golden_ = std::make_unique<GoldenCase>(std::move(golden).value());
    config_.num_hidden_layers = 1;
    config_.compress_ratios = {0};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Verdict verdict_of(const std::vector<Tally>& tallies, const std::string& name) {
    for (const Tally& tally : tallies)
      if (tally.name() == name) return tally.verdict();
    ADD_FAILURE() << name << " was not compared";
    return Verdict::kPrinted;
  }

  std::filesystem::path folder_;
  std::vector<float> values_;
  v41::TextConfig config_;
  std::unique_ptr<GoldenCase> golden_;
};

TEST_F(RecorderTest, FeedsTheGoldensNumbersOn) {
  Recorder recorder(config_, golden_.get(), {});
  std::vector<float> computed(8, 0.0F);
  recorder.tap("layers.0.attn_norm", MatrixView<float>(computed.data(), 2, 4));
  EXPECT_EQ(computed, values_);
}

TEST_F(RecorderTest, JudgesAnOpOnlyWhenItsInputsWereFed) {
  Recorder recorder(config_, golden_.get(), {});
  std::vector<float> wrong(8, 0.0F);
  recorder.tap("layers.0.attn_norm", MatrixView<float>(wrong.data(), 2, 4));
  wrong.assign(8, 0.0F);
  recorder.tap("layers.0.qr", MatrixView<float>(wrong.data(), 2, 4));
  const std::vector<Tally> tallies = recorder.finish();
  EXPECT_EQ(verdict_of(tallies, "layers.attn_norm"), Verdict::kPrinted);  // its input x_in was not
  EXPECT_EQ(verdict_of(tallies, "layers.qr"), Verdict::kFail);
}

TEST_F(RecorderTest, ATapThatNobodyProducedFails) {
  Recorder recorder(config_, golden_.get(), {});
  recorder.tap("layers.0.attn_norm", MatrixView<float>(values_.data(), 2, 4));
  Report report;
  report.add("case", "run", recorder.finish());
  EXPECT_EQ(report.count(Verdict::kFail), 0);
  report_untaken(*golden_, &report);
  EXPECT_EQ(report.count(Verdict::kFail), 1);
  EXPECT_EQ(report.lines.back().tally.name(), "layers.0.qr");
  EXPECT_FALSE(report.passed());
}

TEST_F(RecorderTest, ATapWithoutItsLastRowsFails) {
  Recorder recorder(config_, golden_.get(), {});
  recorder.tap("layers.0.attn_norm", MatrixView<float>(values_.data(), 2, 4));
  recorder.tap("layers.0.qr", MatrixView<float>(values_.data(), 1, 4));
  EXPECT_EQ(verdict_of(recorder.finish(), "layers.qr"), Verdict::kFail);
}

TEST_F(RecorderTest, ATapOfAnotherWidthFails) {
  Recorder recorder(config_, golden_.get(), {});
  recorder.tap("layers.0.qr", MatrixView<float>(values_.data(), 4, 2));
  EXPECT_EQ(verdict_of(recorder.finish(), "layers.qr"), Verdict::kFail);
}

TEST_F(RecorderTest, RowsOfSeveralStepsFollowOneAnother) {
  Recorder recorder(config_, golden_.get(), {});
  recorder.tap("layers.0.attn_norm", MatrixView<float>(values_.data(), 2, 4));
  recorder.tap("layers.0.qr", MatrixView<float>(values_.data(), 1, 4));
  recorder.tap("layers.0.qr", MatrixView<float>(values_.data() + 4, 1, 4));
  EXPECT_EQ(verdict_of(recorder.finish(), "layers.qr"), Verdict::kPass);
}

TEST(Report, OfNothingDoesNotPass) {
  EXPECT_FALSE(Report().passed());
}

TEST(PoolName, JoinsLayersAndPictures) {
  EXPECT_EQ(pool_name("layers.12.hc_attn.pre"), "layers.hc_attn.pre");
  EXPECT_EQ(pool_name("picture3.vit_out"), "picture.vit_out");
  EXPECT_EQ(pool_name("final_h"), "final_h");
}

TEST(TapInputs, FollowTheLayerRoles) {
  v41::TextConfig config;
  config.num_hidden_layers = 3;
  config.compress_ratios = {0, 1, 1};
  config.kv_source_layer_ids = {1};
  config.index_source_layer_ids = {1};
  EXPECT_EQ(tap_inputs(config, "layers.2.o"),
            (std::vector<std::string>{"layers.2.q", "layers.2.window_kv", "layers.1.compressed_kv",
                                      "layers.1.topk"}));
  EXPECT_EQ(tap_inputs(config, "layers.0.x_in"), std::vector<std::string>{"embed"});
  EXPECT_EQ(tap_inputs(config, "layers.1.made_up"), std::vector<std::string>{"unknown"});
}

}  // namespace
}  // namespace fathom::verify
