// config.json of DeepSeek-V4.1: typed, defaulted and validated. Field names are the file's own;
// docs/formats/checkpoint.md lists each field, its default and the fields that are not used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace fathom::v41 {

struct RopeScaling {  // rope_type "yarn", the only kind
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  int64_t original_max_position_embeddings = 65536;
};

enum class ScoringFunc { kSqrtSoftplus, kSoftmax, kSigmoid };

struct TextConfig {
  int64_t vocab_size = 129280;                  // V
  int64_t hidden_size = 5120;                   // D
  int64_t num_hidden_layers = 40;               // L
  int64_t num_attention_heads = 64;             // H
  int64_t head_dim = 512;                       // Hd
  int64_t q_lora_rank = 1280;                   // Qr
  int64_t qk_rope_head_dim = 64;                // R
  double rope_theta = 10000;                    // layers of ratio 0
  double compress_rope_theta = 160000;          // layers of ratio 1 and 2, with rope_scaling
  std::optional<RopeScaling> rope_scaling;      // none: no YaRN
  int64_t max_position_embeddings = 1048576;    // context, tokens
  int64_t sliding_window = 128;                 // W
  std::vector<int32_t> compress_ratios;         // [L], each 0, 1 or 2
  std::vector<int32_t> kv_source_layer_ids;     // ascending
  std::vector<int32_t> index_source_layer_ids;  // ascending
  int32_t candidate_source_layer_id = -1;       // negative: no candidate restriction
  int64_t candidate_topk_blocks = 2048;
  int64_t candidate_block_size = 8;      // compressed positions a block
  int64_t index_n_heads = 32;            // Ih
  int64_t index_head_dim = 128;          // Id
  int64_t index_topk = 512;              // K
  int64_t o_groups = 8;                  // G
  int64_t o_lora_rank = 1024;            // Or
  int64_t moe_intermediate_size = 2304;  // F, routed and shared
  int64_t n_routed_experts = 384;        // E
  int64_t num_experts_per_tok = 6;       // A
  ScoringFunc scoring_func = ScoringFunc::kSqrtSoftplus;
  double gate_temp = 1.0;
  bool norm_topk_prob = true;
  double routed_scaling_factor = 1.5;
  double swiglu_limit = 10.0;  // not positive: no clamp
  int64_t hc_mult = 4;         // S
  int64_t hc_sinkhorn_iters = 20;
  double hc_eps = 1e-6;
  double rms_norm_eps = 1e-20;
  std::vector<int32_t> engram_layer_ids;       // ascending; empty: no Engram
  std::vector<int64_t> engram_num_embeddings;  // rows of each table
  int64_t engram_vocab_size = 16000000;
  int64_t engram_max_ngram_size = 4;
  int64_t engram_n_heads = 8;
  int64_t engram_head_dim = 256;
  int64_t engram_pad_token_id = 2;
  int64_t engram_compressed_vocab_size = 99092;
  int64_t num_nextn_predict_layers = 3;  // DSpark stages
  int64_t dspark_block_size = 5;
  TokenId dspark_noise_token_id = 128799;
  int64_t dspark_markov_rank = 256;
  std::vector<int32_t> dspark_target_layer_ids;
  int64_t dspark_n_routed_experts = 128;
  int64_t dspark_num_experts_per_tok = 3;
  TokenId bos_token_id = 0;
  TokenId eos_token_id = 1;

  int64_t engram_columns() const {  // rows looked up for a token and layer
    return (engram_max_ngram_size - 1) * engram_n_heads;
  }
};

struct VisionConfig {
  int64_t num_hidden_layers = 32;
  int64_t hidden_size = 1024;
  int64_t num_attention_heads = 16;
  int64_t intermediate_size = 2816;
  int64_t patch_size = 14;
  double rope_theta = 10000;
  int64_t downsample_ratio = 3;
  int64_t max_image_tokens = 1024;
  int64_t min_pixels = 295936;
  std::optional<double> max_wh_ratio;  // none: any shape
};

struct Config {
  TextConfig text;
  std::optional<VisionConfig> vision;  // none: a text-only model
  TokenId image_token_id = 129264;
  std::vector<std::string> notices;  // one line for each field that is not known, for the log
};

// What layer l (0-based, < L) is, from the lists of the config.
struct LayerRole {
  int32_t ratio = 0;             // r: 0 window only, else tokens a compressed entry stands for
  int32_t kv_source = -1;        // layer whose compressed KV and index keys are read; -1 when r = 0
  int32_t index_source = -1;     // layer whose top-k list is read; -1 when r = 0
  bool is_kv_source = false;     // has a compressor and index keys
  bool is_index_source = false;  // has index queries
  bool is_candidate_source = false;
  bool uses_candidates = false;  // index source after the candidate source
  int32_t engram = -1;           // position in engram_layer_ids; -1: no Engram here
};
LayerRole layer_role(const TextConfig& text, LayerId layer);

// Primes of the Engram hash buckets (spec §5.2): [engram layer][n-gram order − 2][head].
// The rows of a layer's table are their sum.
using EngramPrimes = std::vector<std::vector<std::vector<int64_t>>>;
EngramPrimes engram_primes(const TextConfig& text);

inline constexpr int64_t kConfigBytesMax = 1 << 20;

// `text` is the content of config.json. Errors name the field, the wanted and the found:
// kDataLoss for what contradicts itself, kUnsupported for what Fathom does not do.
Result<Config> parse_config(std::string_view text);

}  // namespace fathom::v41
