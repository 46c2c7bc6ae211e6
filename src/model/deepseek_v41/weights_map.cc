#include "model/deepseek_v41/weights_map.h"

#include "memory/mapped_row_table.h"

namespace fathom::v41 {

namespace {

constexpr int64_t kHcParts = 3;  // pre, post, comb
constexpr int64_t kColours = 3;
constexpr int64_t kGateAndUp = 2;  // stacked in vision mlp.w1
constexpr int64_t kQueryKeyValue = 3;

class WeightsMap {
 public:
  WeightsMap(const Config& config, TensorBinder* binder)
      : config_(config), t_(config.text), in_(*binder) {}

  BoundWeights bind() {
    BoundWeights bound;
    Weights& w = bound.weights;
    w.embed = in_.bf16("embed.weight", t_.vocab_size, t_.hidden_size);
    w.norm = in_.vector_bf16("norm.weight", t_.hidden_size);
    w.head = in_.bf16("head.weight", t_.vocab_size, t_.hidden_size);
    const auto layers = static_cast<int32_t>(t_.num_hidden_layers);
    for (int32_t l = 0; l < layers; ++l) {
      const std::string p = fmt::format("layers.{}.", l);
      const LayerRole role = layer_role(t_, LayerId{l});
      w.layers.push_back(block(p, role, t_.n_routed_experts));
      if (role.engram >= 0) w.layers.back().engram = engram(p + "engram.", role.engram);
      bound.experts.emplace(LayerId{l}, experts(p + "ffn.experts", t_.n_routed_experts));
    }
    if (in_.has_prefix("mtp.")) {
      for (int32_t i = 0; i < t_.num_nextn_predict_layers; ++i) {
        w.mtp.push_back(stage(i));
        bound.experts.emplace(LayerId{layers + i}, experts(fmt::format("mtp.{}.ffn.experts", i),
                                                           t_.dspark_n_routed_experts));
      }
    }
    if (config_.vision && in_.has_prefix("vision.")) w.vision = vision(*config_.vision);
    return bound;
  }

 private:
  HcWeights hc_site(const std::string& p) {
    const int64_t streams = t_.hc_mult;
    const int64_t count = (2 + streams) * streams;
    return {.fn = in_.matrix_f32(p + "_fn", count, streams * t_.hidden_size),
            .base = in_.vector_f32(p + "_base", count),
            .scale = in_.vector_f32(p + "_scale", kHcParts)};
  }

  CompressorWeights compressor(const std::string& p, const LayerRole& role) {
    CompressorWeights c;
    c.wkv = in_.bf16(p + "wkv.weight", t_.head_dim, t_.hidden_size);
    c.norm = in_.vector_bf16(p + "norm.weight", t_.head_dim);
    if (role.ratio > 1) c.wgate = in_.bf16(p + "wgate.weight", t_.head_dim, t_.hidden_size);
    return c;
  }

  IndexerWeights indexer(const std::string& p, const LayerRole& role) {
    IndexerWeights i;
    i.wq_b = in_.fp8(p + "wq_b", t_.index_n_heads * t_.index_head_dim, t_.q_lora_rank);
    i.weights_proj = in_.bf16(p + "weights_proj.weight", t_.index_n_heads, t_.hidden_size);
    if (role.is_kv_source) {
      i.wk = in_.bf16(p + "wk.weight", t_.index_head_dim, t_.head_dim);
      i.k_norm = in_.vector_bf16(p + "k_norm.weight", t_.index_head_dim);
    }
    return i;
  }

  AttentionWeights attention(const std::string& p, const LayerRole& role) {
    const int64_t heads_width = t_.num_attention_heads * t_.head_dim;
    const int64_t groups_width = t_.o_groups * t_.o_lora_rank;
    AttentionWeights a;
    a.wq_a = in_.fp8(p + "wq_a", t_.q_lora_rank, t_.hidden_size);
    a.q_norm = in_.vector_bf16(p + "q_norm.weight", t_.q_lora_rank);
    a.wq_b = in_.fp8(p + "wq_b", heads_width, t_.q_lora_rank);
    a.wkv = in_.fp8(p + "wkv", t_.head_dim, t_.hidden_size);
    a.kv_norm = in_.vector_bf16(p + "kv_norm.weight", t_.head_dim);
    a.wo_a = in_.fp8(p + "wo_a", groups_width, heads_width / t_.o_groups);
    a.wo_b = in_.fp8(p + "wo_b", t_.hidden_size, groups_width);
    a.attn_sink = in_.vector_f32(p + "attn_sink", t_.num_attention_heads);
    if (role.is_kv_source) a.compressor = compressor(p + "compressor.", role);
    if (role.is_index_source) a.indexer = indexer(p + "indexer.", role);
    return a;
  }

  FfnWeights ffn(const std::string& p, int64_t expert_count) {
    const int64_t d = t_.hidden_size;
    const int64_t f = t_.moe_intermediate_size;
    FfnWeights ffn;
    ffn.expert_count = expert_count;
    ffn.gate.weight = in_.bf16(p + "gate.weight", expert_count, d);
    ffn.gate.bias = in_.vector_f32(p + "gate.bias", expert_count);
    ffn.gate.bias_vl = in_.vector_f32(p + "gate.bias_vl", expert_count);
    ffn.shared_experts = {.w1 = in_.fp8(p + "shared_experts.w1", f, d),
                          .w3 = in_.fp8(p + "shared_experts.w3", f, d),
                          .w2 = in_.fp8(p + "shared_experts.w2", d, f)};
    return ffn;
  }

  MappedExpertLayer experts(const std::string& name, int64_t count) {
    const int64_t d = t_.hidden_size;
    const int64_t f = t_.moe_intermediate_size;
    MappedExpertLayer layer{.name = name, .experts = {}};
    for (int64_t e = 0; e < count; ++e) {
      const std::string p = fmt::format("{}.{}.", name, e);
      layer.experts.push_back({.w1 = in_.fp4(p + "w1", f, d),
                               .w3 = in_.fp4(p + "w3", f, d),
                               .w2 = in_.fp4(p + "w2", d, f)});
    }
    return layer;
  }

  EngramWeights engram(const std::string& p, int32_t position) {
    const int64_t rows = t_.engram_num_embeddings[static_cast<size_t>(position)];
    const TensorBinder::Table table = in_.table(p + "embed", rows, t_.engram_head_dim);
    EngramWeights e;
    e.embed = std::make_unique<MappedRowTable>(p + "embed", table.file, rows, t_.engram_head_dim,
                                               table.codes, table.scales);
    e.wkv = in_.fp8(p + "wkv", (t_.hc_mult + 1) * t_.hidden_size,
                    t_.engram_columns() * t_.engram_head_dim);
    e.q_weight = in_.matrix_bf16(p + "q_weight", t_.hc_mult, t_.hidden_size);
    e.k_weight = in_.matrix_bf16(p + "k_weight", t_.hc_mult, t_.hidden_size);
    return e;
  }

  // Everything of a layer but its Engram and its routed experts.
  BlockWeights block(const std::string& p, const LayerRole& role, int64_t expert_count) {
    BlockWeights b;
    b.attn_norm = in_.vector_bf16(p + "attn_norm.weight", t_.hidden_size);
    b.ffn_norm = in_.vector_bf16(p + "ffn_norm.weight", t_.hidden_size);
    b.hc_attn = hc_site(p + "hc_attn");
    b.hc_ffn = hc_site(p + "hc_ffn");
    b.attn = attention(p + "attn.", role);
    b.ffn = ffn(p + "ffn.", expert_count);
    return b;
  }

  StageWeights stage(int32_t i) {
    const std::string p = fmt::format("mtp.{}.", i);
    const int64_t d = t_.hidden_size;
    StageWeights s;
    s.block = block(p, LayerRole{}, t_.dspark_n_routed_experts);
    if (i == 0) {
      const auto targets = static_cast<int64_t>(t_.dspark_target_layer_ids.size());
      s.main_proj = in_.fp8(p + "main_proj", d, targets * d);
      s.main_norm = in_.vector_bf16(p + "main_norm.weight", d);
    }
    if (i == t_.num_nextn_predict_layers - 1) {
      const int64_t rank = t_.dspark_markov_rank;
      s.norm = in_.vector_bf16(p + "norm.weight", d);
      s.markov_embed = in_.bf16(p + "markov_head.embed.weight", t_.vocab_size, rank);
      s.markov_head = in_.bf16(p + "markov_head.head.weight", t_.vocab_size, rank);
      s.confidence_head_proj = in_.bf16(p + "confidence_head.proj.weight", 1, d + rank);
    }
    return s;
  }

  LinearWeights linear(const std::string& name, int64_t rows, int64_t cols) {
    return {.weight = in_.bf16(name + ".weight", rows, cols),
            .bias = in_.vector_bf16(name + ".bias", rows)};
  }

  VisionBlockWeights vision_block(const std::string& p, const VisionConfig& v) {
    const int64_t c = v.hidden_size;
    VisionBlockWeights b;
    b.norm1 = in_.vector_bf16(p + "norm1.weight", c);
    b.norm2 = in_.vector_bf16(p + "norm2.weight", c);
    b.wqkv = linear(p + "attn.wqkv", kQueryKeyValue * c, c);
    b.wo = linear(p + "attn.wo", c, c);
    b.mlp_w1 = in_.bf16(p + "mlp.w1.weight", kGateAndUp * v.intermediate_size, c);
    b.mlp_w2 = in_.bf16(p + "mlp.w2.weight", c, v.intermediate_size);
    return b;
  }

  VisionWeights vision(const VisionConfig& v) {
    const int64_t c = v.hidden_size;
    const int64_t d = t_.hidden_size;
    VisionWeights w;
    w.patch_embed_proj =
        linear("vision.patch_embed.proj", c, kColours * v.patch_size * v.patch_size);
    for (int64_t b = 0; b < v.num_hidden_layers; ++b)
      w.blocks.push_back(vision_block(fmt::format("vision.blocks.{}.", b), v));
    w.norm = in_.vector_bf16("vision.norm.weight", c);
    w.aligner_w1 = linear("aligner.w1", d, c * v.downsample_ratio * v.downsample_ratio);
    w.aligner_w2 = linear("aligner.w2", d, d);
    w.image_start = in_.vector_bf16("image_start", d);
    w.image_newline = in_.vector_bf16("image_newline", d);
    w.image_end = in_.vector_bf16("image_end", d);
    return w;
  }

  const Config& config_;
  const TextConfig& t_;
  TensorBinder& in_;
};

}  // namespace

BoundWeights bind_weights(const Config& config, TensorBinder* binder) {
  return WeightsMap(config, binder).bind();
}

}  // namespace fathom::v41
