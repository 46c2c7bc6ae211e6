#include "model/deepseek_v41/config_rules.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "kernels/rope.h"

namespace fathom::v41 {

namespace {

using LayerList = std::vector<int32_t>;

const LayerList kReleasedKvSources = {2, 8, 14, 20};
const LayerList kReleasedIndexSources = {2, 8, 14, 20, 24, 28, 32, 36};
constexpr int64_t kReleasedLayerCount = 40;
constexpr int64_t kQuantBlock = 32;  // rows and columns that share a weight or activation scale
constexpr size_t kDefaultTargets = 3;

bool contains(const LayerList& list, int32_t layer) {
  return std::ranges::find(list, layer) != list.end();
}

LayerList runs_to_list(int64_t zeros, int64_t twos, int64_t ones) {
  LayerList list(static_cast<size_t>(zeros), 0);
  list.insert(list.end(), static_cast<size_t>(twos), 2);
  list.insert(list.end(), static_cast<size_t>(ones), 1);
  return list;
}

LayerList default_ratios(int64_t layers) {
  if (layers == kReleasedLayerCount) return runs_to_list(2, 18, 20);
  const int64_t start = std::min<int64_t>(2, layers);
  const int64_t encoder = std::max<int64_t>(0, (layers - start + 1) / 2);
  return runs_to_list(start, encoder, layers - start - encoder);
}

// Takes the file's list, which may have a zero more for each DSpark stage, down to L entries.
Status take_ratios(const LayerList& given, TextConfig* text) {
  const int64_t count = static_cast<int64_t>(given.size());
  const int64_t layers = text->num_hidden_layers;
  const bool has_stages = count == layers + text->num_nextn_predict_layers;
  if (count != layers && !has_stages)
    return error(Code::kDataLoss,
                 "text_config.compress_ratios: wanted {} entries (or {} with the DSpark stages), "
                 "found {}",
                 layers, layers + text->num_nextn_predict_layers, count);
  for (int64_t l = layers; l < count; ++l)
    if (given[static_cast<size_t>(l)] != 0)
      return error(Code::kUnsupported,
                   "text_config.compress_ratios[{}]: wanted 0 (a DSpark stage), found {}", l,
                   given[static_cast<size_t>(l)]);
  text->compress_ratios.assign(given.begin(), given.begin() + layers);
  return {};
}

// First layer of each run of equal non-zero ratio.
LayerList run_starts(const LayerList& ratios) {
  LayerList starts;
  for (size_t l = 0; l < ratios.size(); ++l)
    if (ratios[l] != 0 && (l == 0 || ratios[l - 1] != ratios[l]))
      starts.push_back(static_cast<int32_t>(l));
  return starts;
}

LayerList default_kv_sources(const LayerList& ratios) {
  const bool is_released = ratios == default_ratios(kReleasedLayerCount);
  return is_released ? kReleasedKvSources : run_starts(ratios);
}

// The last three layers that are no kv source, ascending.
LayerList default_targets(const TextConfig& text) {
  LayerList targets;
  for (int64_t l = text.num_hidden_layers - 1; l >= 0 && targets.size() < kDefaultTargets; --l)
    if (!contains(text.kv_source_layer_ids, static_cast<int32_t>(l)))
      targets.insert(targets.begin(), static_cast<int32_t>(l));
  return targets;
}

std::vector<int64_t> engram_rows(const TextConfig& text) {
  std::vector<int64_t> rows;
  for (const auto& layer : engram_primes(text)) {
    int64_t sum = 0;
    for (const auto& order : layer) sum = std::accumulate(order.begin(), order.end(), sum);
    rows.push_back(sum);
  }
  return rows;
}

Status check_ascending(const char* name, const LayerList& list, int64_t layers) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] >= layers)
      return error(Code::kDataLoss, "text_config.{}: wanted layers below {}, found {}", name,
                   layers, list[i]);
    if (i > 0 && list[i] <= list[i - 1])
      return error(Code::kDataLoss, "text_config.{}: wanted ascending layers, found {} after {}",
                   name, list[i], list[i - 1]);
  }
  return {};
}

// The last entry of `sources` that is not beyond `layer`, or -1.
int32_t nearest_source(const LayerList& sources, int32_t layer) {
  const auto after = std::ranges::upper_bound(sources, layer);
  return after == sources.begin() ? -1 : *(after - 1);
}

Status check_sources(const TextConfig& text) {
  const auto ratio = [&](int32_t l) { return text.compress_ratios[static_cast<size_t>(l)]; };
  for (int32_t l : text.kv_source_layer_ids) {
    if (ratio(l) == 0)
      return error(Code::kDataLoss,
                   "text_config.kv_source_layer_ids: layer {} has compress ratio 0, a source "
                   "needs 1 or 2",
                   l);
    if (!contains(text.index_source_layer_ids, l))
      return error(Code::kDataLoss,
                   "text_config.index_source_layer_ids: kv source {} is missing, nothing would "
                   "make its index keys",
                   l);
  }
  for (int32_t l : text.index_source_layer_ids) {
    const int32_t source = nearest_source(text.kv_source_layer_ids, l);
    if (source < 0 || ratio(source) != ratio(l))
      return error(Code::kDataLoss,
                   "text_config.index_source_layer_ids: layer {} (ratio {}) has no kv source of "
                   "its ratio at or before it",
                   l, ratio(l));
  }
  for (int32_t l = 0; l < text.num_hidden_layers; ++l) {
    if (ratio(l) == 0) continue;
    const int32_t source = nearest_source(text.kv_source_layer_ids, l);
    if (source < 0 || ratio(source) != ratio(l))
      return error(Code::kDataLoss,
                   "text_config.compress_ratios: layer {} has ratio {}, but no kv source of that "
                   "ratio at or before it",
                   l, ratio(l));
    // Lists of positions are only meaningful in the compressed sequence they were made for.
    if (nearest_source(text.index_source_layer_ids, l) < source)
      return error(Code::kDataLoss,
                   "text_config.index_source_layer_ids: layer {} would use a list made before kv "
                   "source {}",
                   l, source);
  }
  const int32_t candidate = text.candidate_source_layer_id;
  if (candidate >= 0 && !contains(text.index_source_layer_ids, candidate))
    return error(Code::kDataLoss,
                 "text_config.candidate_source_layer_id: wanted an index source, found {}",
                 candidate);
  return {};
}

// Candidates are groups of one ratio: they can restrict only index sources of that ratio.
Status check_candidates(const TextConfig& text) {
  const int32_t candidate = text.candidate_source_layer_id;
  if (candidate < 0) return {};
  const auto ratio = [&](int32_t l) { return text.compress_ratios[static_cast<size_t>(l)]; };
  for (int32_t l : text.index_source_layer_ids)
    if (l > candidate && ratio(l) != ratio(candidate))
      return error(Code::kUnsupported,
                   "text_config.candidate_source_layer_id {}: it has ratio {}, but the later index "
                   "source {} has {}; wanted the same",
                   candidate, ratio(candidate), l, ratio(l));
  return {};
}

struct Divisible {
  const char* name;
  int64_t value;
  int64_t divisor;
  const char* reason;
};

Status check_divisible(std::initializer_list<Divisible> rules) {
  for (const Divisible& rule : rules)
    if (rule.value % rule.divisor != 0)
      return error(Code::kDataLoss, "{} is {}: wanted a multiple of {} ({})", rule.name, rule.value,
                   rule.divisor, rule.reason);
  return {};
}

Status check_sizes(const TextConfig& t) {
  FATHOM_TRY(check_divisible({
      {"text_config.hidden_size", t.hidden_size, kQuantBlock, "quantisation blocks"},
      {"text_config.q_lora_rank", t.q_lora_rank, kQuantBlock, "quantisation blocks"},
      {"text_config.head_dim", t.head_dim, kQuantBlock, "quantisation blocks"},
      {"text_config.index_head_dim", t.index_head_dim, kQuantBlock, "quantisation blocks"},
      {"text_config.moe_intermediate_size", t.moe_intermediate_size, kQuantBlock,
       "quantisation blocks"},
      {"text_config.engram_head_dim", t.engram_head_dim, kQuantBlock, "quantisation blocks"},
      {"text_config.o_groups times o_lora_rank", t.o_groups * t.o_lora_rank, kQuantBlock,
       "quantisation blocks"},
      {"text_config.num_attention_heads", t.num_attention_heads, t.o_groups, "o_groups"},
      {"text_config.qk_rope_head_dim", t.qk_rope_head_dim, 2, "rotary pairs"},
  }));
  if (t.qk_rope_head_dim > std::min(t.head_dim, t.index_head_dim))
    return error(Code::kDataLoss,
                 "text_config.qk_rope_head_dim is {}: wanted at most head_dim {} and "
                 "index_head_dim {}",
                 t.qk_rope_head_dim, t.head_dim, t.index_head_dim);
  if (t.num_experts_per_tok > t.n_routed_experts)
    return error(Code::kDataLoss,
                 "text_config.num_experts_per_tok is {}: wanted at most n_routed_experts {}",
                 t.num_experts_per_tok, t.n_routed_experts);
  if (t.dspark_num_experts_per_tok > t.dspark_n_routed_experts)
    return error(Code::kDataLoss,
                 "text_config.dspark_num_experts_per_tok is {}: wanted at most "
                 "dspark_n_routed_experts {}",
                 t.dspark_num_experts_per_tok, t.dspark_n_routed_experts);
  return {};
}

Status check_engram(const TextConfig& text) {
  if (text.engram_layer_ids.empty()) return {};
  const std::vector<int64_t> rows = engram_rows(text);
  if (text.engram_num_embeddings != rows)
    return error(Code::kDataLoss,
                 "text_config.engram_num_embeddings: wanted [{}], the sums of the bucket primes, "
                 "found [{}]",
                 fmt::join(rows, ", "), fmt::join(text.engram_num_embeddings, ", "));
  if (text.engram_compressed_vocab_size > text.vocab_size)
    return error(Code::kDataLoss,
                 "text_config.engram_compressed_vocab_size is {}: wanted at most vocab_size {}",
                 text.engram_compressed_vocab_size, text.vocab_size);
  return {};
}

Status check_vision(const VisionConfig& vision) {
  FATHOM_TRY(check_divisible(
      {{"vision_config.hidden_size", vision.hidden_size, 4 * vision.num_attention_heads,
        "heads, and quarters of a head for the rotation"}}));
  if (vision.hidden_size / vision.num_attention_heads > kernels::kRotaryMax)
    return error(Code::kUnsupported,
                 "vision_config.hidden_size is {} for {} heads: wanted heads of at most {}",
                 vision.hidden_size, vision.num_attention_heads, kernels::kRotaryMax);
  return {};
}

Status check_token_ids(const Config& config) {
  const TextConfig& t = config.text;
  const std::pair<const char*, int64_t> ids[] = {
      {"image_token_id", config.vision ? config.image_token_id : 0},
      {"text_config.bos_token_id", t.bos_token_id},
      {"text_config.eos_token_id", t.eos_token_id},
      {"text_config.dspark_noise_token_id",
       t.num_nextn_predict_layers > 0 ? t.dspark_noise_token_id : 0},
      {"text_config.engram_pad_token_id", t.engram_layer_ids.empty() ? 0 : t.engram_pad_token_id}};
  for (const auto& [name, id] : ids)
    if (id >= t.vocab_size)
      return error(Code::kDataLoss, "{}: wanted an id below vocab_size {}, found {}", name,
                   t.vocab_size, id);
  return {};
}

}  // namespace

Status apply_list_rules(const GivenLists& given, TextConfig* text) {
  FATHOM_TRY(
      take_ratios(given.compress_ratios.value_or(default_ratios(text->num_hidden_layers)), text));
  text->kv_source_layer_ids =
      given.kv_source_layer_ids.value_or(default_kv_sources(text->compress_ratios));
  const LayerList& kv = text->kv_source_layer_ids;
  text->index_source_layer_ids =
      given.index_source_layer_ids.value_or(kv == kReleasedKvSources ? kReleasedIndexSources : kv);
  text->candidate_source_layer_id =
      given.candidate_source_layer_id.value_or(kv.empty() ? -1 : kv.back());
  text->dspark_target_layer_ids = given.dspark_target_layer_ids.value_or(default_targets(*text));
  text->engram_layer_ids = given.engram_layer_ids.value_or(LayerList{});
  text->engram_num_embeddings = given.engram_num_embeddings.value_or(engram_rows(*text));
  if (text->dspark_n_routed_experts == 0) text->dspark_n_routed_experts = text->n_routed_experts;
  if (text->dspark_num_experts_per_tok == 0)
    text->dspark_num_experts_per_tok = text->num_experts_per_tok;
  return {};
}

Status validate(const Config& config) {
  const TextConfig& text = config.text;
  const int64_t layers = text.num_hidden_layers;
  FATHOM_TRY(check_ascending("kv_source_layer_ids", text.kv_source_layer_ids, layers));
  FATHOM_TRY(check_ascending("index_source_layer_ids", text.index_source_layer_ids, layers));
  FATHOM_TRY(check_ascending("engram_layer_ids", text.engram_layer_ids, layers));
  FATHOM_TRY(check_ascending("dspark_target_layer_ids", text.dspark_target_layer_ids, layers));
  FATHOM_TRY(check_sources(text));
  FATHOM_TRY(check_candidates(text));
  FATHOM_TRY(check_sizes(text));
  FATHOM_TRY(check_engram(text));
  FATHOM_TRY(check_token_ids(config));
  return config.vision ? check_vision(*config.vision) : Status();
}

}  // namespace fathom::v41
