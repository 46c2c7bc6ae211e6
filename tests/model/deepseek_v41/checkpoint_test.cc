// Opening the committed checkpoints. checkpoint_damage_test.cc opens damaged ones.
#include "model/deepseek_v41/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/deepseek_v41/damaged_checkpoint.h"

namespace fathom::v41 {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;
using Tensors = std::vector<RawTensor>;

std::string golden(const std::string& name) {
  return std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + name + "/checkpoint";
}

std::unique_ptr<Checkpoint> opened(const std::string& directory) {
  auto checkpoint = Checkpoint::open(directory);
  EXPECT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  return checkpoint.is_ok() ? std::move(checkpoint).value() : nullptr;
}

TEST(Checkpoint, TheTinyModelOpensWithEveryPart) {
  const auto checkpoint = opened(golden("v41-tiny"));
  ASSERT_NE(checkpoint, nullptr);
  const Weights& w = checkpoint->weights();
  EXPECT_TRUE(checkpoint->notices().empty());
  ASSERT_EQ(w.layers.size(), 8U);
  ASSERT_EQ(w.mtp.size(), 3U);
  ASSERT_TRUE(w.vision.has_value());
  EXPECT_EQ(w.vision->blocks.size(), 2U);
  EXPECT_EQ(w.embed.rows, 512);
  EXPECT_EQ(w.layers[0].attn.wq_a.rows, 64);
  EXPECT_EQ(w.layers[0].attn.attn_sink.size(), 4U);
  EXPECT_FALSE(w.layers[0].attn.compressor.has_value());
  EXPECT_TRUE(w.layers[1].attn.compressor->wgate.has_value());
  EXPECT_FALSE(w.layers[4].attn.compressor->wgate.has_value());
  EXPECT_TRUE(w.layers[4].attn.indexer->wk.has_value());
  EXPECT_FALSE(w.layers[6].attn.indexer->wk.has_value());
  ASSERT_TRUE(w.layers[3].engram.has_value());
  EXPECT_EQ(w.layers[3].engram->embed->rows(), 864);
  EXPECT_TRUE(w.mtp[0].main_proj.has_value());
  EXPECT_TRUE(w.mtp[2].markov_head.has_value());
  // Norm weights are drawn around 1, so a misread one would show.
  for (float v : w.layers[5].attn_norm) EXPECT_NEAR(v, 1, 0.6);
  EXPECT_EQ(checkpoint->tokenizer_path(), golden("v41-tiny") + "/tokenizer.json");
}

TEST(Checkpoint, TheWideModelOpens) {
  const auto checkpoint = opened(golden("v41-wide"));
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->weights().mtp.size(), 1U);
}

TEST(Checkpoint, ExpertsOfBackboneAndStagesArePinned) {
  const auto checkpoint = opened(golden("v41-tiny"));
  const ExpertId last[] = {{7}};
  const auto expert = checkpoint->experts().pin(LayerId{7}, last)->wait(0);
  ASSERT_TRUE(expert.is_ok()) << expert.status().message();
  EXPECT_EQ(expert->w1.rows, 64);
  EXPECT_EQ(expert->w2.rows, 128);
  EXPECT_EQ(expert->w2.cols, 64);
  const ExpertId draft[] = {{3}};
  EXPECT_TRUE(checkpoint->experts().pin(LayerId{10}, draft)->wait(0).is_ok());
}

TEST(Checkpoint, LoadingReadsBackboneAndVision) {
  const auto checkpoint = opened(golden("v41-tiny"));
  LoadProgress last;
  EXPECT_TRUE(checkpoint->load({.progress = [&](const auto& p) { last = p; }}).is_ok());
  EXPECT_GT(last.bytes_total, 1'000'000);
  EXPECT_EQ(last.bytes_done, last.bytes_total);
}

TEST(Checkpoint, PartsThatAreWhollyAbsentAreNotices) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.forget_tensors([](const std::string& name) {
    return name.starts_with("mtp.") || name.starts_with("vision.") ||
           name.starts_with("aligner.") || name.starts_with("image_");
  });
  const auto checkpoint = opened(copy.directory());
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_FALSE(checkpoint->weights().vision.has_value());
  EXPECT_TRUE(checkpoint->weights().mtp.empty());
  EXPECT_THAT(checkpoint->notices(),
              AllOf(Contains(HasSubstr("vision.*")), Contains(HasSubstr("mtp.*"))));
}

TEST(Checkpoint, AStrayModelFileIsNotRead) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.replace("model.safetensors", "not a safetensors file");
  EXPECT_NE(opened(copy.directory()), nullptr);
}

TEST(Checkpoint, TensorsAtOddOffsetsHaveTheSameValues) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.edit_shard("layers.1.hc_attn_fn",
                  [](Tensors&) {});  // rewritten: its data begins at an odd byte
  const auto moved = opened(copy.directory());
  const auto original = opened(golden("v41-tiny"));
  EXPECT_THAT(moved->notices(), Contains(HasSubstr("layers.1.hc_attn_fn lies at an odd offset")));
  const BlockWeights& a = moved->weights().layers[1];
  const BlockWeights& b = original->weights().layers[1];
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.hc_attn.fn.data) % alignof(float), 0U);
  for (int64_t r = 0; r < b.hc_attn.fn.rows; ++r)
    EXPECT_THAT(a.hc_attn.fn.row(r), ElementsAreArray(b.hc_attn.fn.row(r)));
  EXPECT_THAT(a.attn_norm, ElementsAreArray(b.attn_norm));
}

TEST(Checkpoint, ANanScaleOfAnExpertIsFoundWhenItIsPinned) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.edit_tensor("layers.2.ffn.experts.5.w3.scale",
                   [](RawTensor& t) { set_element<uint8_t>(&t, 3, 255); });
  const auto checkpoint = opened(copy.directory());
  ASSERT_NE(checkpoint, nullptr);
  const ExpertId two[] = {{4}, {5}};
  auto pins = checkpoint->experts().pin(LayerId{2}, two);
  EXPECT_TRUE(pins->wait(0).is_ok());
  EXPECT_THAT(pins->wait(1).status().message(),
              AllOf(HasSubstr("layers.2.ffn.experts.5.w3.scale"), HasSubstr(".safetensors")));
}

TEST(Checkpoint, ANanScaleOfAnEngramRowIsFoundWhenItIsRead) {
  const DamagedCheckpoint copy("v41-tiny");
  copy.edit_tensor("layers.1.engram.embed.scale",
                   [](RawTensor& t) { set_element<uint8_t>(&t, 9, 255); });
  const auto checkpoint = opened(copy.directory());
  ASSERT_NE(checkpoint, nullptr);
  const RowTable& table = *checkpoint->weights().layers[1].engram->embed;
  std::vector<uint8_t> codes(32);
  std::vector<uint8_t> scales(1);
  const int64_t bad[] = {9};
  EXPECT_EQ(table.gather(bad, codes, scales).code(), Code::kDataLoss);
  const int64_t good[] = {8};
  EXPECT_TRUE(table.gather(good, codes, scales).is_ok());
}

TEST(Checkpoint, AFolderThatIsNotThereIsNamed) {
  const auto checkpoint = Checkpoint::open("/nonexistent/model");
  EXPECT_EQ(checkpoint.status().code(), Code::kNotFound);
  EXPECT_THAT(checkpoint.status().message(), HasSubstr("/nonexistent/model: there is no such"));
}

}  // namespace
}  // namespace fathom::v41
