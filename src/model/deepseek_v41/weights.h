// The weights of a checkpoint by the checkpoint's own names: layers[2].attn.compressor->wkv is the
// tensor "layers.2.attn.compressor.wkv.weight" (and its .scale).
//
// Matrices point into the mapped shards. Vectors that are stored as bf16 (norms, biases, picture
// delimiters, Engram q/k weights) are widened to f32 once, at load: 3 MB for the released model,
// and each was checked to be finite. F32 vectors point into the mapping. Routed experts are not
// here: memory/expert_store.h hands them out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "memory/row_table.h"
#include "tensor/view.h"

namespace fathom::v41 {

using Vector = std::span<const float>;

// hc_attn_* or hc_ffn_*: parameters of one hyper-connection site.
struct HcWeights {
  MatrixView<const float> fn;  // [(2 + S) S, S D]
  Vector base;                 // [(2 + S) S]
  Vector scale;                // [3]: pre, post, comb
};

struct CompressorWeights {          // kv sources
  WeightView wkv;                   // bf16 [Hd, D]
  std::optional<WeightView> wgate;  // bf16 [Hd, D]; ratio 2 only
  Vector norm;                      // [Hd]
};

struct IndexerWeights {          // index sources
  WeightView wq_b;               // FP8 [Ih Id, Qr]
  WeightView weights_proj;       // bf16 [Ih, D]
  std::optional<WeightView> wk;  // bf16 [Id, Hd]; kv sources only
  Vector k_norm;                 // [Id]; kv sources only
};

struct AttentionWeights {
  WeightView wq_a;   // FP8 [Qr, D]
  Vector q_norm;     // [Qr]
  WeightView wq_b;   // FP8 [H Hd, Qr]
  WeightView wkv;    // FP8 [Hd, D]
  Vector kv_norm;    // [Hd]
  WeightView wo_a;   // FP8 [G Or, H Hd / G]
  WeightView wo_b;   // FP8 [D, G Or]
  Vector attn_sink;  // [H]
  std::optional<CompressorWeights> compressor;
  std::optional<IndexerWeights> indexer;
};

struct GateWeights {
  WeightView weight;  // bf16 [E, D]
  Vector bias;        // [E] text tokens
  Vector bias_vl;     // [E] tokens of a picture
};

struct SharedExpertWeights {
  WeightView w1;  // FP8 [F, D]
  WeightView w3;  // FP8 [F, D]
  WeightView w2;  // FP8 [D, F]
};

struct FfnWeights {
  GateWeights gate;
  SharedExpertWeights shared_experts;
  int64_t expert_count = 0;  // E; the experts of layer l come from ExpertStore, LayerId l
};

struct EngramWeights {
  std::unique_ptr<RowTable> embed;   // FP8 rows of engram_head_dim
  WeightView wkv;                    // FP8 [(S + 1) D, columns · engram_head_dim]
  MatrixView<const float> q_weight;  // [S, D]
  MatrixView<const float> k_weight;  // [S, D]
};

struct BlockWeights {
  Vector attn_norm;  // [D]
  Vector ffn_norm;   // [D]
  HcWeights hc_attn;
  HcWeights hc_ffn;
  AttentionWeights attn;
  FfnWeights ffn;
  std::optional<EngramWeights> engram;
};

// One DSpark stage: mtp.{i}. Its experts come from ExpertStore as LayerId L + i.
struct StageWeights {
  BlockWeights block;
  std::optional<WeightView> main_proj;             // first stage: FP8 [D, targets · D]
  Vector main_norm;                                // first stage: [D]
  Vector norm;                                     // last stage: [D]
  std::optional<WeightView> markov_embed;          // last stage: bf16 [V, markov rank]
  std::optional<WeightView> markov_head;           // last stage: bf16 [V, markov rank]
  std::optional<WeightView> confidence_head_proj;  // last stage: bf16 [1, D + markov rank]
};

struct LinearWeights {  // with bias
  WeightView weight;    // bf16 [out, in]
  Vector bias;          // [out]
};

struct VisionBlockWeights {
  Vector norm1;        // [C]
  Vector norm2;        // [C]
  LinearWeights wqkv;  // [3 C, C]
  LinearWeights wo;    // [C, C]
  WeightView mlp_w1;   // bf16 [2 I, C]
  WeightView mlp_w2;   // bf16 [C, I]
};

struct VisionWeights {             // vision.* and aligner.*
  LinearWeights patch_embed_proj;  // [C, 3 · patch²]
  std::vector<VisionBlockWeights> blocks;
  Vector norm;               // [C]
  LinearWeights aligner_w1;  // [D, C · ratio²]
  LinearWeights aligner_w2;  // [D, D]
  Vector image_start;        // [D]
  Vector image_newline;      // [D]
  Vector image_end;          // [D]
};

struct Weights {
  WeightView embed;  // bf16 [V, D]
  std::vector<BlockWeights> layers;
  Vector norm;                          // [D]
  WeightView head;                      // bf16 [V, D]
  std::vector<StageWeights> mtp;        // empty when the checkpoint ships none
  std::optional<VisionWeights> vision;  // none when the checkpoint ships none
};

}  // namespace fathom::v41
