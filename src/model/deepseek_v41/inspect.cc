#include "model/deepseek_v41/inspect.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace fathom::v41 {

namespace {

constexpr const char* kDense = "backbone without routed experts";
constexpr const char* kExperts = "routed experts";
constexpr const char* kEngram = "Engram";
constexpr const char* kDrafts = "drafts (DSpark)";
constexpr const char* kVision = "vision, aligner, delimiters";
constexpr const char* kEnds = "embedding, norm, head";
constexpr const char* kPartOrder[] = {kEnds, kDense, kExperts, kEngram, kDrafts, kVision};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

const char* part_of(std::string_view name) {
  if (name.starts_with("mtp.")) return kDrafts;
  if (name.starts_with("layers."))
    return contains(name, ".engram.")        ? kEngram
           : contains(name, ".ffn.experts.") ? kExperts
                                             : kDense;
  const bool is_end =
      name.starts_with("embed.") || name.starts_with("norm.") || name.starts_with("head.");
  return is_end ? kEnds : kVision;
}

// Logical elements: packed FP4 counts twice.
int64_t elements_of(const TensorEntry& entry) {
  const int64_t stored = entry.bytes / dtype_bytes(entry.dtype);
  return entry.dtype == DType::kI8 ? 2 * stored : stored;
}

std::string dtype_label(DType dtype) {
  return dtype == DType::kI8 ? "FP4 (two in an I8)" : std::string(dtype_name(dtype));
}

void add(const TensorEntry& entry, InspectCount* count) {
  const bool is_scale = entry.dtype == DType::kF8E8M0;
  ++count->tensors;
  (is_scale ? count->scales : count->parameters) += elements_of(entry);
  count->bytes += entry.bytes;
}

void count_tensors(const Checkpoint& checkpoint, InspectReport* report) {
  std::map<std::string, InspectCount> parts;
  std::map<std::string, InspectCount> dtypes;
  for (const auto& shard : checkpoint.shards()) {
    report->file_bytes += shard->file().bytes();
    for (const TensorEntry& entry : shard->tensors()) {
      add(entry, &parts[part_of(entry.name)]);
      add(entry, &dtypes[dtype_label(entry.dtype)]);
    }
  }
  for (const char* name : kPartOrder) {
    InspectCount& part = parts[name];
    part.name = name;
    report->tensors += part.tensors;
    report->parameters += part.parameters;
    report->payload_bytes += part.bytes;
    report->parts.push_back(part);
  }
  for (auto& [name, count] : dtypes) {
    count.name = name;
    report->dtypes.push_back(count);
  }
}

InspectLayer describe_layer(const TextConfig& text, int32_t l) {
  const LayerRole role = layer_role(text, LayerId{l});
  InspectLayer layer;
  layer.layer = l;
  layer.ratio = role.ratio;
  layer.role = role.ratio == 0        ? "window"
               : role.is_kv_source    ? "full"
               : role.is_index_source ? "reindex"
                                      : "reuse";
  layer.kv_source = role.kv_source;
  layer.index_source = role.index_source;
  layer.is_candidate_source = role.is_candidate_source;
  layer.has_engram = role.engram >= 0;
  return layer;
}

int64_t elements(const WeightView& weight) {
  return weight.rows * weight.cols;
}

int64_t active_of_attention(const AttentionWeights& a) {
  int64_t sum =
      elements(a.wq_a) + elements(a.wq_b) + elements(a.wkv) + elements(a.wo_a) + elements(a.wo_b);
  if (a.compressor) {
    sum += elements(a.compressor->wkv);
    if (a.compressor->wgate) sum += elements(*a.compressor->wgate);
  }
  if (a.indexer) {
    sum += elements(a.indexer->wq_b) + elements(a.indexer->weights_proj);
    if (a.indexer->wk) sum += elements(*a.indexer->wk);
  }
  return sum;
}

// Matrix elements that a decoded text token is multiplied with (spec §10); norms are left out.
int64_t active_parameters(const TextConfig& text, const Weights& weights) {
  int64_t sum = elements(weights.head);
  for (const BlockWeights& block : weights.layers) {
    const SharedExpertWeights& shared = block.ffn.shared_experts;
    const int64_t expert = elements(shared.w1) + elements(shared.w3) + elements(shared.w2);
    sum += active_of_attention(block.attn) + elements(block.ffn.gate.weight) +
           (1 + text.num_experts_per_tok) * expert + block.hc_attn.fn.rows * block.hc_attn.fn.cols +
           block.hc_ffn.fn.rows * block.hc_ffn.fn.cols;
    if (block.engram) sum += elements(block.engram->wkv);
  }
  return sum;
}

// One row of compressed KV and index keys for each kv source and group; see state.h.
InspectMemory forecast_memory(const TextConfig& text, const InspectReport& report) {
  constexpr int64_t kRowElementBytes = 2;  // caches hold bf16
  std::map<std::string_view, int64_t> bytes;
  for (const InspectCount& part : report.parts) bytes[part.name] = part.bytes;
  InspectMemory memory;
  memory.experts_all = bytes[kExperts];
  memory.experts_per_token = memory.experts_all / text.n_routed_experts * text.num_experts_per_tok;
  memory.drafts = bytes[kDrafts];
  memory.vision = bytes[kVision];
  for (int64_t rows : text.engram_num_embeddings)
    memory.engram_tables += rows * (text.engram_head_dim + text.engram_head_dim / 32);
  memory.dense = bytes[kEnds] + bytes[kDense] + bytes[kEngram] - memory.engram_tables;
  for (int32_t l : text.kv_source_layer_ids)
    memory.state_per_token += (text.head_dim + text.index_head_dim) * kRowElementBytes /
                              text.compress_ratios[static_cast<size_t>(l)];
  memory.state_fixed =
      text.num_hidden_layers * text.sliding_window * text.head_dim * kRowElementBytes;
  return memory;
}

}  // namespace

int64_t peak_bytes(const InspectMemory& memory, int64_t routed_tokens, int64_t state_tokens) {
  return memory.dense + memory.vision +
         std::min(memory.experts_all, routed_tokens * memory.experts_per_token) +
         memory.state_fixed + state_tokens * memory.state_per_token;
}

InspectReport inspect_checkpoint(const Checkpoint& checkpoint) {
  const TextConfig& text = checkpoint.config().text;
  InspectReport report;
  report.directory = checkpoint.directory();
  report.shards = static_cast<int64_t>(checkpoint.shards().size());
  report.context_tokens = text.max_position_embeddings;
  report.notices = checkpoint.notices();
  report.draft_target_layers = text.dspark_target_layer_ids;
  count_tensors(checkpoint, &report);
  for (int32_t l = 0; l < text.num_hidden_layers; ++l)
    report.layers.push_back(describe_layer(text, l));
  report.active_parameters = active_parameters(text, checkpoint.weights());
  report.memory = forecast_memory(text, report);
  return report;
}

Result<InspectResult> run_inspect(const std::string& directory, const InspectOptions& options) {
  FATHOM_ASSIGN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(directory));
  InspectReport report = inspect_checkpoint(*checkpoint);
  if (options.is_deep) {
    FATHOM_ASSIGN(report.deep, inspect_deep(*checkpoint, options.reading));
  }
  return InspectResult{options.is_json ? inspect_json(report) : inspect_text(report),
                       !report.deep || report.deep->problem_count == 0};
}

}  // namespace fathom::v41
