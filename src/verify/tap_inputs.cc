#include "verify/tap_inputs.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>

namespace fathom::verify {
namespace {

// A layer, or a DSpark stage as layer L + i.
std::string of_layer(const v41::TextConfig& config, int32_t layer, std::string_view tap) {
  const auto layers = static_cast<int32_t>(config.num_hidden_layers);
  return layer < layers ? fmt::format("layers.{}.{}", layer, tap)
                        : fmt::format("mtp.{}.{}", layer - layers, tap);
}

using Names = std::vector<std::string>;

// Inputs of the same layer; spec §0 line by line.
const std::map<std::string, Names, std::less<>>& inputs_in_layer() {
  static const std::map<std::string, Names, std::less<>> table = {
      {"engram.rows", {}},
      {"engram.kv", {"engram.rows"}},
      {"engram.gate", {"engram.x_in", "engram.kv"}},
      {"hc_attn.pre", {"x_in"}},
      {"hc_attn.post", {"x_in"}},
      {"hc_attn.comb", {"x_in"}},
      {"attn_norm", {"x_in", "pre_in"}},
      {"qr", {"attn_norm"}},
      {"q", {"qr"}},
      {"window_kv", {"attn_norm"}},
      {"latent", {"attn_norm"}},
      {"index_k", {"latent"}},
      {"compressed_kv", {"latent"}},
      {"index_q", {"qr"}},
      {"index_w", {"attn_norm"}},
      {"candidates", {"index_score"}},
      {"wo_a_out", {"o"}},
      {"attn_out", {"o"}},
      {"x_mid", {"attn_out", "hc_attn.post", "hc_attn.comb", "x_in"}},
      {"hc_ffn.pre", {"x_mid"}},
      {"hc_ffn.post", {"x_mid"}},
      {"hc_ffn.comb", {"x_mid"}},
      {"ffn_norm", {"x_mid", "hc_attn.pre"}},
      {"router.scores", {"ffn_norm"}},
      {"router.ids", {"ffn_norm"}},
      {"router.weights", {"ffn_norm"}},
      {"shared_out", {"ffn_norm"}},
      {"ffn_out", {"ffn_norm"}},
      {"x_out", {"x_mid", "ffn_out", "hc_ffn.post", "hc_ffn.comb"}},
  };
  return table;
}

// The streams that leave layer - 1: of layer 0 the embedding, as of the first stage, whose tokens
// are given.
Names previous_streams(const v41::TextConfig& config, int32_t layer) {
  if (layer == 0) return {"embed"};
  if (layer == config.num_hidden_layers) return {};
  Names names;
  for (const char* tap : {"x_mid", "ffn_out", "hc_ffn.post", "hc_ffn.comb"})
    names.push_back(of_layer(config, layer - 1, tap));
  return names;
}

v41::LayerRole role_of(const v41::TextConfig& config, int32_t layer) {
  return layer < config.num_hidden_layers ? v41::layer_role(config, LayerId{layer})
                                          : v41::LayerRole{};
}

// Inputs that come from another layer; empty when `tap` has none of them.
Names inputs_across_layers(const v41::TextConfig& config, int32_t layer, std::string_view tap) {
  const v41::LayerRole role = role_of(config, layer);
  const bool is_stage = layer >= config.num_hidden_layers;
  const bool is_first = layer == 0 || layer == config.num_hidden_layers;
  const auto own = [&](std::string_view name) { return of_layer(config, layer, name); };
  if (tap == "engram.x_in" || (tap == "x_in" && role.engram < 0))
    return previous_streams(config, layer);
  if (tap == "x_in") return {own("engram.x_in"), own("engram.kv")};
  if (tap == "pre_in") return is_first ? Names{} : Names{of_layer(config, layer - 1, "hc_ffn.pre")};
  if (tap == "index_score")
    return {own("index_q"), own("index_w"), of_layer(config, role.kv_source, "index_k")};
  if (tap == "topk") {
    Names names = {own("index_score")};
    if (role.uses_candidates)
      names.push_back(of_layer(config, config.candidate_source_layer_id, "candidates"));
    return names;
  }
  if (tap == "o" && is_stage) return {own("q"), own("window_ring"), own("attn_norm")};
  if (tap == "o") {
    Names names = {own("q"), own("window_kv")};
    if (role.ratio > 0) {
      names.push_back(of_layer(config, role.kv_source, "compressed_kv"));
      names.push_back(of_layer(config, role.index_source, "topk"));
    }
    return names;
  }
  return {"unknown"};
}

Names inputs_of_draft(const v41::TextConfig& config, std::string_view tap) {
  const auto last =
      static_cast<int32_t>(config.num_hidden_layers + config.num_nextn_predict_layers - 1);
  if (tap == "main_x") return {"draft.main_hidden"};
  if (tap == "h") return {of_layer(config, last, "x_out"), of_layer(config, last, "hc_ffn.pre")};
  if (tap == "base_logits") return {"draft.h"};
  if (tap == "markov_embed") return {"draft.ids"};
  if (tap == "logits") return {"draft.base_logits", "draft.markov_embed"};
  if (tap == "confidence") return {"draft.h", "draft.markov_embed"};
  if (tap == "ids") return {"draft.logits"};
  return {"unknown"};
}

Names inputs_of_top(const v41::TextConfig& config, const std::string& tap) {
  const auto last = static_cast<int32_t>(config.num_hidden_layers - 1);
  if (tap == "embed") return {};
  if (tap == "final_h")
    return {of_layer(config, last, "x_out"), of_layer(config, last, "hc_ffn.pre")};
  if (tap == "final_norm") return {"final_h"};
  if (tap == "logits") return {"final_norm"};
  if (tap == "main_hidden") {
    Names names;
    for (const int32_t target : config.dspark_target_layer_ids)
      names.push_back(of_layer(config, target, "x_in"));
    return names;
  }
  return {"unknown"};
}

// "layers.3.qr" is layer 3, "mtp.0.qr" layer L; the rest of the name into `tap`. -1: neither.
int32_t layer_of(const v41::TextConfig& config, std::string_view name, std::string_view* tap) {
  const auto layers = static_cast<int32_t>(config.num_hidden_layers);
  const auto stages = static_cast<int32_t>(config.num_nextn_predict_layers);
  for (const auto& [kind, first, count] : {std::tuple{std::string_view("layers."), 0, layers},
                                           std::tuple{std::string_view("mtp."), layers, stages}}) {
    if (!name.starts_with(kind)) continue;
    const size_t dot = name.find('.', kind.size());
    if (dot == std::string_view::npos) return -1;
    const int32_t i = std::atoi(std::string(name.substr(kind.size())).c_str());
    *tap = name.substr(dot + 1);
    return i >= 0 && i < count ? first + i : -1;
  }
  return -1;
}

}  // namespace

std::vector<std::string> tap_inputs(const v41::TextConfig& config, const std::string& tap) {
  constexpr std::string_view kDraft = "draft.";
  if (tap.starts_with(kDraft))
    return inputs_of_draft(config, std::string_view(tap).substr(kDraft.size()));
  if (!tap.starts_with("layers.") && !tap.starts_with("mtp.")) return inputs_of_top(config, tap);
  std::string_view name;
  const int32_t layer = layer_of(config, tap, &name);
  if (layer < 0) return {"unknown"};
  const auto& table = inputs_in_layer();
  const auto known = table.find(name);
  if (known == table.end()) return inputs_across_layers(config, layer, name);
  Names names;
  for (const std::string& input : known->second) names.push_back(of_layer(config, layer, input));
  return names;
}

}  // namespace fathom::verify
