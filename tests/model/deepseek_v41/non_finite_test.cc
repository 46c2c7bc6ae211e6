// Topic: a number that is not finite stops the request where it first appears, by name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/model/deepseek_v41/tiny_model.h"

namespace fathom::v41 {
namespace {

namespace fs = std::filesystem;

// A copy of the tiny checkpoint in which all scales of one tensor are 2^119: the largest weights
// are just finite, and a sum of a few of them is not.
class NonFinite : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fathom_non_finite_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::copy(golden_path("v41-tiny") + "/checkpoint", folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void blow_up(const std::string& scale_tensor) {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".safetensors") continue;
      auto file = SafetensorsFile::open(entry.path());
      ASSERT_TRUE(file.is_ok()) << file.status().message();
      const TensorEntry* tensor = (*file)->find(scale_tensor);
      if (tensor == nullptr) continue;
      const std::string scales(static_cast<size_t>(tensor->bytes), static_cast<char>(127 + 119));
      const int64_t offset = tensor->offset;
      fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
      std::fstream out(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
      out.seekp(offset);
      out.write(scales.data(), static_cast<std::streamsize>(scales.size()));
      ASSERT_TRUE(out.good());
      return;
    }
    FAIL() << scale_tensor << " is in no shard";
  }

  Status run() {
    ThreadPool pool(2);
    auto opened = Checkpoint::open(folder_);
    if (!opened) return opened.status();
    const std::shared_ptr<Checkpoint> checkpoint = std::move(opened).value();
    const auto model = make_model(checkpoint, pool, {.isa = kernels::available_isas().back()});
    auto state = model->new_sequence(64);
    if (!state) return state.status();
    const std::vector<InputToken> tokens(40, InputToken{.token = 77});
    const SequenceRows rows = {.state = state->get(), .tokens = tokens};
    std::vector<float> logits;
    return model->forward(std::span(&rows, 1), nullptr, &logits);
  }

  fs::path folder_;
};

TEST_F(NonFinite, ValuesOfTheAttentionOutputAreNamed) {
  blow_up("layers.3.attn.wo_b.scale");
  const Status status = run();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("layers.3.attn_out"), std::string::npos) << status.message();
}

TEST_F(NonFinite, ValuesOfTheSharedExpertAreNamed) {
  blow_up("layers.5.ffn.shared_experts.w2.scale");
  const Status status = run();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("layers.5.shared_out"), std::string::npos) << status.message();
}

TEST_F(NonFinite, AnIntactModelRuns) {
  const Status status = run();
  EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace fathom::v41
