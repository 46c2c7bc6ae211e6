// The default rules of spec §1.1, and configs that contradict themselves or ask for more.
#include "model/deepseek_v41/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "base/json.h"
#include "io/read_file.h"

namespace fathom::v41 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<int32_t>;

// The smallest config that says nothing but what it is: every other field takes its default.
Json bare() {
  return {{"model_type", "deepseek_v41"}, {"text_config", Json::object()}};
}

Json tiny() {
  const auto text =
      read_file(std::string(FATHOM_SOURCE_DIR) + "/tests/golden/v41-tiny/checkpoint/config.json",
                kConfigBytesMax);
  return *parse_json(*text);
}

Config parsed(const Json& json) {
  Result<Config> config = parse_config(json.dump());
  EXPECT_TRUE(config.is_ok()) << config.status().message();
  return config.is_ok() ? std::move(config).value() : Config{};
}

Ints repeat(std::initializer_list<std::pair<int, int32_t>> runs) {
  Ints list;
  for (const auto& [count, value] : runs)
    list.insert(list.end(), static_cast<size_t>(count), value);
  return list;
}

TEST(Config, AbsentFieldsTakeTheReleasedValues) {
  const Config config = parsed(bare());
  const TextConfig& t = config.text;
  EXPECT_EQ(t.vocab_size, 129280);
  EXPECT_EQ(t.hidden_size, 5120);
  EXPECT_EQ(t.compress_rope_theta, 160000);
  EXPECT_EQ(t.rms_norm_eps, 1e-20);
  EXPECT_EQ(t.gate_temp, 1.0);
  EXPECT_EQ(t.compress_ratios, repeat({{2, 0}, {18, 2}, {20, 1}}));
  EXPECT_THAT(t.kv_source_layer_ids, ElementsAre(2, 8, 14, 20));
  EXPECT_THAT(t.index_source_layer_ids, ElementsAre(2, 8, 14, 20, 24, 28, 32, 36));
  EXPECT_EQ(t.candidate_source_layer_id, 20);
  EXPECT_THAT(t.dspark_target_layer_ids, ElementsAre(37, 38, 39));
  EXPECT_TRUE(t.engram_layer_ids.empty());
  EXPECT_FALSE(t.rope_scaling.has_value());
  EXPECT_EQ(t.dspark_n_routed_experts, t.n_routed_experts);
  EXPECT_EQ(t.dspark_num_experts_per_tok, t.num_experts_per_tok);
  EXPECT_FALSE(config.vision.has_value());
  EXPECT_TRUE(config.notices.empty());
}

TEST(Config, OtherDepthsSplitIntoEncoderAndDecoder) {
  Json json = bare();
  json["text_config"]["num_hidden_layers"] = 9;
  const TextConfig t = parsed(json).text;
  // s = 2, e = (9 - 2 + 1) / 2 = 4, the other 3 are decoder layers.
  EXPECT_EQ(t.compress_ratios, repeat({{2, 0}, {4, 2}, {3, 1}}));
  EXPECT_THAT(t.kv_source_layer_ids, ElementsAre(2, 6));
  EXPECT_EQ(t.index_source_layer_ids, t.kv_source_layer_ids);
  EXPECT_EQ(t.candidate_source_layer_id, 6);
  EXPECT_THAT(t.dspark_target_layer_ids, ElementsAre(5, 7, 8));
}

TEST(Config, AModelOfOneLayerHasOnlyAWindow) {
  Json json = bare();
  json["text_config"]["num_hidden_layers"] = 1;
  const TextConfig t = parsed(json).text;
  EXPECT_EQ(t.compress_ratios, Ints{0});
  EXPECT_TRUE(t.kv_source_layer_ids.empty());
  EXPECT_EQ(t.candidate_source_layer_id, -1);
  EXPECT_EQ(layer_role(t, LayerId{0}).kv_source, -1);
}

TEST(Config, RatiosMayListTheStagesOrNot) {
  Json json = tiny();
  const TextConfig with = parsed(json).text;
  json["text_config"]["compress_ratios"] = {0, 2, 2, 2, 1, 1, 1, 1};
  EXPECT_EQ(parsed(json).text.compress_ratios, with.compress_ratios);
  EXPECT_EQ(with.compress_ratios.size(), 8U);
}

TEST(Config, BothSpellingsOfThePadTokenAreRead) {
  Json json = tiny();
  json["text_config"].erase("engram_pad_token_id");
  json["text_config"]["engram_pad_id"] = 7;
  EXPECT_EQ(parsed(json).text.engram_pad_token_id, 7);
}

TEST(Config, LayerRolesFollowTheLists) {
  const TextConfig t = parsed(tiny()).text;  // kv 1,3,4; index 1,3,4,6; candidates 4; Engram 1,3
  const LayerRole window = layer_role(t, LayerId{0});
  EXPECT_EQ(window.ratio, 0);
  EXPECT_EQ(window.kv_source, -1);
  EXPECT_FALSE(window.is_kv_source);
  const LayerRole full = layer_role(t, LayerId{3});
  EXPECT_EQ(full.ratio, 2);
  EXPECT_TRUE(full.is_kv_source && full.is_index_source);
  EXPECT_EQ(full.engram, 1);
  EXPECT_FALSE(full.uses_candidates);
  const LayerRole candidate = layer_role(t, LayerId{4});
  EXPECT_TRUE(candidate.is_candidate_source);
  EXPECT_FALSE(candidate.uses_candidates);
  const LayerRole reindex = layer_role(t, LayerId{6});
  EXPECT_TRUE(reindex.is_index_source && reindex.uses_candidates);
  EXPECT_FALSE(reindex.is_kv_source);
  EXPECT_EQ(reindex.kv_source, 4);
  const LayerRole reuse = layer_role(t, LayerId{7});
  EXPECT_EQ(reuse.kv_source, 4);
  EXPECT_EQ(reuse.index_source, 6);
  EXPECT_FALSE(reuse.is_index_source || reuse.uses_candidates);
  EXPECT_EQ(reuse.engram, -1);
}

TEST(Config, EngramPrimesAreThoseOfTheReleasedTables) {
  TextConfig t;
  t.engram_layer_ids = {1, 14};
  const EngramPrimes primes = engram_primes(t);
  ASSERT_EQ(primes.size(), 2U);
  EXPECT_THAT(primes[0][0], ElementsAre(16000057, 16000079, 16000081, 16000097, 16000121, 16000129,
                                        16000133, 16000183));
  EXPECT_EQ(primes[1][2].back(), 16000889);
  std::vector<int64_t> rows;
  for (const auto& layer : primes) {
    rows.push_back(0);
    for (const auto& order : layer)
      rows.back() = std::accumulate(order.begin(), order.end(), rows.back());
  }
  EXPECT_THAT(rows, ElementsAre(384006168, 384016682));
}

TEST(Config, AbsentTableSizesAreComputed) {
  Json json = tiny();
  json["text_config"].erase("engram_num_embeddings");
  EXPECT_THAT(parsed(json).text.engram_num_embeddings, ElementsAre(660, 864));
}

TEST(Config, AFieldThatIsNotKnownGivesOneLine) {
  Json json = tiny();
  json["brand_new_switch"] = true;
  json["text_config"]["another"] = 1;
  EXPECT_THAT(parsed(json).notices,
              ElementsAre(HasSubstr("brand_new_switch"), HasSubstr("text_config.another")));
}

struct BadConfig {
  const char* name;
  std::function<void(Json&)> damage;
  const char* complaint;  // part of the message
};

class BadConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigTest, IsRefusedByName) {
  Json json = tiny();
  GetParam().damage(json);
  const auto config = parse_config(json.dump());
  ASSERT_FALSE(config.is_ok());
  EXPECT_THAT(config.status().message(), HasSubstr(GetParam().complaint));
}

BadConfig text(const char* name, const char* field, Json value, const char* complaint) {
  return {name, [=](Json& json) { json["text_config"][field] = value; }, complaint};
}

BadConfig vision(const char* name, const char* field, Json value, const char* complaint) {
  return {name, [=](Json& json) { json["vision_config"][field] = value; }, complaint};
}

BadConfig quantised(const char* name, const char* field, Json value) {
  return {name, [=](Json& json) { json["quantization_config"][field] = value; }, field};
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConfigTest,
    testing::Values(
        BadConfig{"no_type", [](Json& j) { j.erase("model_type"); }, "model_type: wanted"},
        BadConfig{"other_type", [](Json& j) { j["model_type"] = "deepseek_v4"; }, "deepseek_v4"},
        BadConfig{"type_number", [](Json& j) { j["model_type"] = 5; }, "found 5"},
        BadConfig{"architectures", [](Json& j) { j["architectures"] = {"X"}; }, "architectures"},
        BadConfig{"no_text", [](Json& j) { j.erase("text_config"); }, "text_config: wanted"},
        BadConfig{"text_is_list", [](Json& j) { j["text_config"] = {1}; }, "text_config: wanted"},
        BadConfig{"tied", [](Json& j) { j["tie_word_embeddings"] = true; }, "tie_word_embeddings"},
        BadConfig{"image_token", [](Json& j) { j["image_token_id"] = 512; }, "image_token_id"},
        text("hidden_negative", "hidden_size", -32, "hidden_size: wanted a whole number from 1"),
        text("hidden_huge", "hidden_size", int64_t{1} << 40, "hidden_size"),
        text("hidden_unsigned", "hidden_size", ~uint64_t{0}, "18446744073709551615"),
        text("hidden_odd", "hidden_size", 100, "wanted a multiple of 32"),
        text("hidden_text", "hidden_size", "128", "found \"128\""),
        text("hidden_fraction", "hidden_size", 128.5, "found 128.5"),
        text("hidden_null", "hidden_size", nullptr, "found null"),
        text("layers", "num_hidden_layers", 7, "compress_ratios: wanted 7 entries"),
        text("ratio_four", "compress_ratios", Json({4, 0, 0, 0, 0, 0, 0, 0}), "from 0 to 2"),
        text("ratio_stage", "compress_ratios", Json({0, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0}),
             "compress_ratios[8]"),
        text("kv_heads", "num_key_value_heads", 2, "num_key_value_heads"),
        text("kv_beyond", "kv_source_layer_ids", Json({1, 3, 8}), "layers below 8, found 8"),
        text("kv_order", "kv_source_layer_ids", Json({3, 1}), "found 1 after 3"),
        text("kv_on_window", "kv_source_layer_ids", Json({0, 1, 3, 4}), "layer 0 has"),
        text("kv_without", "kv_source_layer_ids", Json({3, 4}), "index_source_layer_ids: layer 1"),
        text("kv_none", "kv_source_layer_ids", Json::array(), "layer 1"),
        text("index_without", "index_source_layer_ids", Json({1, 3, 6}), "kv source 4 is missing"),
        text("candidate", "candidate_source_layer_id", 5, "candidate_source_layer_id"),
        text("candidate_early", "candidate_source_layer_id", 1, "source 4 has 1; wanted the same"),
        text("streams", "hc_mult", 9, "from 1 to 8"),
        text("rope", "qk_rope_head_dim", 128, "qk_rope_head_dim"),
        text("rope_wide", "qk_rope_head_dim", 1026, "from 2 to 1024"),
        text("rope_odd", "qk_rope_head_dim", 15, "rotary pairs"),
        text("rope_parameters", "rope_parameters", Json::object(), "rope_parameters"),
        text("rope_kind", "rope_scaling",
             Json({{"rope_type", "linear"},
                   {"factor", 2},
                   {"original_max_position_embeddings", 64}}),
             "rope_scaling.rope_type"),
        text("rope_factor", "rope_scaling", Json({{"rope_type", "yarn"}}), "factor is missing"),
        text("groups", "o_groups", 3, "o_groups"),
        text("experts", "num_experts_per_tok", 9, "num_experts_per_tok"),
        text("draft_experts", "dspark_num_experts_per_tok", 5, "dspark_num_experts_per_tok"),
        text("shared", "n_shared_experts", 2, "n_shared_experts"),
        text("topk_method", "topk_method", "greedy", "topk_method"),
        text("scoring", "scoring_func", "relu", "found \"relu\""),
        text("act", "hidden_act", "gelu", "hidden_act"),
        text("bias", "attention_bias", true, "attention_bias"),
        text("norm_topk", "norm_topk_prob", 1, "true or false"),
        text("engram_rows", "engram_num_embeddings", Json({660, 865}), "wanted [660, 864]"),
        text("engram_layer", "engram_layer_ids", Json({1, 9}), "engram_layer_ids"),
        text("engram_vocab", "engram_compressed_vocab_size", 513, "engram_compressed_vocab_size"),
        text("eos", "eos_token_id", 512, "eos_token_id"),
        text("noise", "dspark_noise_token_id", 600, "dspark_noise_token_id"),
        text("targets", "dspark_target_layer_ids", Json({5, 6, 8}), "dspark_target_layer_ids"),
        vision("vision_heads", "num_attention_heads", 3, "vision_config.hidden_size"),
        vision("vision_wide", "hidden_size", 8192, "heads of at most 1024"),
        vision("vision_zero", "patch_size", 0, "patch_size"),
        vision("vision_ratio", "max_wh_ratio", "wide", "max_wh_ratio"),
        quantised("quant_method", "quant_method", "int8"), quantised("quant_fmt", "fmt", "e5m2"),
        quantised("quant_block", "weight_block_size", {128, 128}),
        quantised("quant_scale", "scale_fmt", "f32"),
        quantised("quant_experts", "expert_dtype", "fp8"),
        quantised("quant_static", "activation_scheme", "static")),
    [](const auto& info) { return info.param.name; });

TEST(Config, WhatIsNoJsonObjectIsRefused) {
  for (const char* text : {"", "{", "[]", "7", "\"x\"", "{\"model_type\": \"deepseek_v41\", }"})
    EXPECT_FALSE(parse_config(text).is_ok()) << text;
}

}  // namespace
}  // namespace fathom::v41
