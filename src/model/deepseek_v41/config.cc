#include "model/deepseek_v41/config.h"

#include <algorithm>

#include "kernels/hyper_connection.h"
#include "kernels/rope.h"
#include "model/deepseek_v41/config_fields.h"
#include "model/deepseek_v41/config_rules.h"

namespace fathom::v41 {

namespace {

// Bounds on what a config may ask for. They are far above any real model and keep every product
// of sizes well inside int64_t; memory is bounded by the files, which must have these sizes.
constexpr int64_t kVocabMax = 1 << 24;
constexpr int64_t kWidthMax = 1 << 17;
constexpr int64_t kLayersMax = 1024;
constexpr int64_t kCountMax = 1 << 16;
constexpr int64_t kContextMax = 1 << 24;  // positions that f32 holds exactly
constexpr int64_t kStagesMax = 16;
// With 7 n-gram orders and 32 heads: 3,584 primes to find, a quarter of a second at worst.
constexpr int64_t kEngramLayersMax = 16;
constexpr int64_t kEngramVocabMax = int64_t{1} << 31;

void read_attention(ConfigFields& in, TextConfig* t) {
  in.whole("num_attention_heads", 1, kCountMax, &t->num_attention_heads);
  in.only("num_key_value_heads", 1);
  in.whole("head_dim", 1, kWidthMax, &t->head_dim);
  in.whole("q_lora_rank", 1, kWidthMax, &t->q_lora_rank);
  in.whole("qk_rope_head_dim", 2, kernels::kRotaryMax, &t->qk_rope_head_dim);
  in.real("rope_theta", 1, 1e12, &t->rope_theta);
  in.real("compress_rope_theta", 1, 1e12, &t->compress_rope_theta);
  in.whole("max_position_embeddings", 1, kContextMax, &t->max_position_embeddings);
  in.whole("sliding_window", 1, kCountMax, &t->sliding_window);
  in.whole("candidate_topk_blocks", 1, kContextMax, &t->candidate_topk_blocks);
  in.whole("candidate_block_size", 1, kCountMax, &t->candidate_block_size);
  in.whole("index_n_heads", 1, kCountMax, &t->index_n_heads);
  in.whole("index_head_dim", 1, kWidthMax, &t->index_head_dim);
  in.whole("index_topk", 1, kCountMax, &t->index_topk);
  in.whole("o_groups", 1, kCountMax, &t->o_groups);
  in.whole("o_lora_rank", 1, kWidthMax, &t->o_lora_rank);
  in.only("attention_bias", false);
}

Status read_scoring_func(ConfigFields& in, TextConfig* t) {
  std::string name = "sqrtsoftplus";
  in.text("scoring_func", &name);
  if (name == "sqrtsoftplus") {
    t->scoring_func = ScoringFunc::kSqrtSoftplus;
  } else if (name == "softmax") {
    t->scoring_func = ScoringFunc::kSoftmax;
  } else if (name == "sigmoid") {
    t->scoring_func = ScoringFunc::kSigmoid;
  } else {
    return error(Code::kUnsupported,
                 "text_config.scoring_func: wanted sqrtsoftplus, softmax or sigmoid, found \"{}\"",
                 name.substr(0, 80));
  }
  return {};
}

void read_moe(ConfigFields& in, TextConfig* t) {
  in.whole("moe_intermediate_size", 1, kWidthMax, &t->moe_intermediate_size);
  in.whole("n_routed_experts", 1, kCountMax, &t->n_routed_experts);
  in.only("n_shared_experts", 1);
  in.whole("num_experts_per_tok", 1, kCountMax, &t->num_experts_per_tok);
  in.real("gate_temp", 1e-6, 1e6, &t->gate_temp);
  in.flag("norm_topk_prob", &t->norm_topk_prob);
  in.real("routed_scaling_factor", -1e6, 1e6, &t->routed_scaling_factor);
  in.only("topk_method", "noaux_tc");
  in.real("swiglu_limit", -1e30, 1e30, &t->swiglu_limit);
  in.only("hidden_act", "silu");
  in.whole("hc_mult", 1, kernels::kStreamsMax, &t->hc_mult);
  in.whole("hc_sinkhorn_iters", 1, 1000, &t->hc_sinkhorn_iters);
  in.real("hc_eps", 0, 1, &t->hc_eps);
  in.real("rms_norm_eps", 0, 1, &t->rms_norm_eps);
}

void read_engram(ConfigFields& in, TextConfig* t) {
  in.whole("engram_vocab_size", 2, kEngramVocabMax, &t->engram_vocab_size);
  in.whole("engram_max_ngram_size", 2, 8, &t->engram_max_ngram_size);
  in.whole("engram_n_heads", 1, 32, &t->engram_n_heads);
  in.whole("engram_head_dim", 1, kWidthMax, &t->engram_head_dim);
  in.whole("engram_pad_id", 0, kVocabMax, &t->engram_pad_token_id);  // the HF class's spelling
  in.whole("engram_pad_token_id", 0, kVocabMax, &t->engram_pad_token_id);
  in.whole("engram_compressed_vocab_size", 1, kVocabMax, &t->engram_compressed_vocab_size);
}

void read_dspark(ConfigFields& in, TextConfig* t) {
  in.whole("num_nextn_predict_layers", 0, kStagesMax, &t->num_nextn_predict_layers);
  in.whole("dspark_block_size", 1, 64, &t->dspark_block_size);
  in.whole("dspark_noise_token_id", 0, kVocabMax, &t->dspark_noise_token_id);
  in.whole("dspark_markov_rank", 1, kWidthMax, &t->dspark_markov_rank);
  t->dspark_n_routed_experts = 0;  // absent: as the backbone
  t->dspark_num_experts_per_tok = 0;
  in.whole("dspark_n_routed_experts", 0, kCountMax, &t->dspark_n_routed_experts);
  in.whole("dspark_num_experts_per_tok", 0, kCountMax, &t->dspark_num_experts_per_tok);
}

void read_lists(ConfigFields& in, GivenLists* given) {
  constexpr int64_t kLast = kLayersMax - 1;
  in.list("compress_ratios", kLayersMax + kStagesMax, 0, 2, &given->compress_ratios);
  in.list("kv_source_layer_ids", kLayersMax, 0, kLast, &given->kv_source_layer_ids);
  in.list("index_source_layer_ids", kLayersMax, 0, kLast, &given->index_source_layer_ids);
  in.list("engram_layer_ids", kEngramLayersMax, 0, kLast, &given->engram_layer_ids);
  in.list("engram_num_embeddings", kEngramLayersMax, 1, int64_t{1} << 40,
          &given->engram_num_embeddings);
  in.list("dspark_target_layer_ids", kLayersMax, 0, kLast, &given->dspark_target_layer_ids);
  if (in.has("candidate_source_layer_id")) {
    int32_t candidate = -1;
    in.whole("candidate_source_layer_id", -kLayersMax, kLast, &candidate);
    given->candidate_source_layer_id = candidate;
  }
}

Status read_rope_scaling(const Json& object, TextConfig* text, std::vector<std::string>* notices) {
  const std::string place = "text_config.rope_scaling.";
  for (const char* name : {"factor", "original_max_position_embeddings"})
    if (!object.contains(name)) return error(Code::kDataLoss, "{}{} is missing", place, name);
  ConfigFields in(object, place);
  RopeScaling scaling;
  in.only("rope_type", "yarn");
  in.only("type", "yarn");
  in.real("factor", 1, 1e6, &scaling.factor);
  in.real("beta_fast", 1e-3, 1e6, &scaling.beta_fast);
  in.real("beta_slow", 1e-3, 1e6, &scaling.beta_slow);
  in.whole("original_max_position_embeddings", 1, kContextMax,
           &scaling.original_max_position_embeddings);
  in.only("attention_factor", 1);
  FATHOM_TRY(in.finish(notices));
  text->rope_scaling = scaling;
  return {};
}

Status read_text(const Json& object, Config* config) {
  ConfigFields in(object, "text_config.");
  TextConfig* t = &config->text;
  in.only("model_type", "deepseek_v41_text");
  in.whole("vocab_size", 2, kVocabMax, &t->vocab_size);
  in.whole("hidden_size", 1, kWidthMax, &t->hidden_size);
  in.whole("num_hidden_layers", 1, kLayersMax, &t->num_hidden_layers);
  in.whole("bos_token_id", 0, kVocabMax, &t->bos_token_id);
  in.whole("eos_token_id", 0, kVocabMax, &t->eos_token_id);
  read_attention(in, t);
  read_moe(in, t);
  read_engram(in, t);
  read_dspark(in, t);
  FATHOM_TRY(read_scoring_func(in, t));
  GivenLists given;
  read_lists(in, &given);
  const Json* rope_scaling = in.object("rope_scaling");
  in.only("rope_parameters", nullptr);  // a newer spelling that would change every position
  in.only("tie_word_embeddings", false);
  in.not_used({"attention_dropout", "pad_token_id", "initializer_range", "use_cache", "dtype",
               "torch_dtype"});
  FATHOM_TRY(in.finish(&config->notices));
  if (rope_scaling != nullptr) FATHOM_TRY(read_rope_scaling(*rope_scaling, t, &config->notices));
  return apply_list_rules(given, t);
}

Status read_vision(const Json& object, Config* config) {
  ConfigFields in(object, "vision_config.");
  VisionConfig vision;
  in.only("model_type", "deepseek_v41_vision");
  in.whole("num_hidden_layers", 1, kLayersMax, &vision.num_hidden_layers);
  in.whole("hidden_size", 4, kWidthMax, &vision.hidden_size);
  in.whole("num_attention_heads", 1, 1024, &vision.num_attention_heads);
  in.whole("intermediate_size", 1, kWidthMax, &vision.intermediate_size);
  in.whole("patch_size", 1, 256, &vision.patch_size);
  in.real("rope_theta", 1, 1e12, &vision.rope_theta);
  in.whole("downsample_ratio", 1, 16, &vision.downsample_ratio);
  in.whole("max_image_tokens", 4, kCountMax, &vision.max_image_tokens);
  in.whole("min_pixels", 1, 1 << 30, &vision.min_pixels);
  if (object.contains("max_wh_ratio") && !object["max_wh_ratio"].is_null()) {
    double ratio = 0;
    in.real("max_wh_ratio", 1e-3, 1e6, &ratio);
    vision.max_wh_ratio = ratio;
  } else {
    in.not_used({"max_wh_ratio"});
  }
  in.not_used({"dtype", "torch_dtype", "initializer_range"});
  FATHOM_TRY(in.finish(&config->notices));
  config->vision = vision;
  return {};
}

// Absent fields mean the released format; another value means bytes that would be misread.
Status read_quantisation(const Json& object, std::vector<std::string>* notices) {
  ConfigFields in(object, "quantization_config.");
  in.only("quant_method", "fp8");
  in.only("fmt", "e4m3");
  in.only("activation_scheme", "dynamic");
  in.only("weight_block_size", Json::array({32, 32}));
  in.only("scale_fmt", "ue8m0");
  in.only("expert_dtype", "fp4");
  return in.finish(notices);
}

}  // namespace

LayerRole layer_role(const TextConfig& text, LayerId layer) {
  const int32_t l = layer.value;
  FATHOM_CHECK(l >= 0 && l < text.num_hidden_layers, "layer {} of {}", l, text.num_hidden_layers);
  const auto nearest = [l](const std::vector<int32_t>& sources) {
    const auto after = std::ranges::upper_bound(sources, l);
    return after == sources.begin() ? -1 : *(after - 1);
  };
  LayerRole role;
  role.ratio = text.compress_ratios[static_cast<size_t>(l)];
  if (role.ratio > 0) {
    role.kv_source = nearest(text.kv_source_layer_ids);
    role.index_source = nearest(text.index_source_layer_ids);
  }
  role.is_kv_source = role.kv_source == l;
  role.is_index_source = role.index_source == l;
  role.is_candidate_source = text.candidate_source_layer_id == l;
  role.uses_candidates = role.is_index_source && text.candidate_source_layer_id >= 0 &&
                         l > text.candidate_source_layer_id;
  const auto engram = std::ranges::find(text.engram_layer_ids, l);
  if (engram != text.engram_layer_ids.end())
    role.engram = static_cast<int32_t>(engram - text.engram_layer_ids.begin());
  return role;
}

Result<Config> parse_config(std::string_view text) {
  Result<Json> root = parse_json(text, {.bytes_max = kConfigBytesMax, .depth_max = 16});
  if (!root) return error(Code::kDataLoss, "{}", root.status().message());
  if (!root->is_object())
    return error(Code::kDataLoss, "wanted an object, found {}", root->type_name());
  if (!root->contains("model_type") || (*root)["model_type"] != "deepseek_v41")
    return error(Code::kUnsupported,
                 "model_type: wanted \"deepseek_v41\", the only architecture Fathom runs, found {}",
                 root->value("model_type", Json()).dump().substr(0, 80));

  Config config;
  ConfigFields in(*root, "");
  in.only("model_type", "deepseek_v41");
  in.only("architectures", Json::array({"DeepseekV41ForCausalLM"}));
  in.whole("image_token_id", 0, kVocabMax, &config.image_token_id);
  in.only("tie_word_embeddings", false);
  in.not_used({"dtype", "torch_dtype", "transformers_version"});
  const Json* text_object = in.object("text_config");
  const Json* vision_object = in.object("vision_config");
  const Json* quantisation = in.object("quantization_config");
  FATHOM_TRY(in.finish(&config.notices));
  if (text_object == nullptr)
    return error(Code::kDataLoss, "text_config: wanted an object, found none");
  FATHOM_TRY(read_text(*text_object, &config));
  if (vision_object != nullptr) FATHOM_TRY(read_vision(*vision_object, &config));
  if (quantisation != nullptr) FATHOM_TRY(read_quantisation(*quantisation, &config.notices));
  FATHOM_TRY(validate(config));
  return config;
}

}  // namespace fathom::v41
