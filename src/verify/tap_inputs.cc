#include "verify/tap_inputs.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string_view>

namespace fathom::verify {
namespace {

std::string of_layer(int32_t layer, std::string_view tap) {
  return fmt::format("layers.{}.{}", layer, tap);
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

// The streams that leave layer - 1: of layer 0 the embedding.
Names previous_streams(int32_t layer) {
  if (layer == 0) return {"embed"};
  Names names;
  for (const char* tap : {"x_mid", "ffn_out", "hc_ffn.post", "hc_ffn.comb"})
    names.push_back(of_layer(layer - 1, tap));
  return names;
}

// Inputs that come from another layer; empty when `tap` has none of them.
Names inputs_across_layers(const v41::TextConfig& config, int32_t layer, std::string_view tap) {
  const v41::LayerRole role = v41::layer_role(config, LayerId{layer});
  if (tap == "engram.x_in" || (tap == "x_in" && role.engram < 0)) return previous_streams(layer);
  if (tap == "x_in") return {of_layer(layer, "engram.x_in"), of_layer(layer, "engram.kv")};
  if (tap == "pre_in") return layer == 0 ? Names{} : Names{of_layer(layer - 1, "hc_ffn.pre")};
  if (tap == "index_score")
    return {of_layer(layer, "index_q"), of_layer(layer, "index_w"),
            of_layer(role.kv_source, "index_k")};
  if (tap == "topk") {
    Names names = {of_layer(layer, "index_score")};
    if (role.uses_candidates)
      names.push_back(of_layer(config.candidate_source_layer_id, "candidates"));
    return names;
  }
  if (tap == "o") {
    Names names = {of_layer(layer, "q"), of_layer(layer, "window_kv")};
    if (role.ratio > 0) {
      names.push_back(of_layer(role.kv_source, "compressed_kv"));
      names.push_back(of_layer(role.index_source, "topk"));
    }
    return names;
  }
  return {"unknown"};
}

Names inputs_of_top(const v41::TextConfig& config, const std::string& tap) {
  const auto last = static_cast<int32_t>(config.num_hidden_layers - 1);
  if (tap == "embed") return {};
  if (tap == "final_h") return {of_layer(last, "x_out"), of_layer(last, "hc_ffn.pre")};
  if (tap == "final_norm") return {"final_h"};
  if (tap == "logits") return {"final_norm"};
  if (tap == "main_hidden") {
    Names names;
    for (const int32_t target : config.dspark_target_layer_ids)
      names.push_back(of_layer(target, "x_in"));
    return names;
  }
  return {"unknown"};
}

}  // namespace

std::vector<std::string> tap_inputs(const v41::TextConfig& config, const std::string& tap) {
  constexpr std::string_view kLayers = "layers.";
  if (!tap.starts_with(kLayers)) return inputs_of_top(config, tap);
  const size_t dot = tap.find('.', kLayers.size());
  if (dot == std::string::npos) return {"unknown"};
  const int32_t layer = std::atoi(tap.c_str() + kLayers.size());
  if (layer < 0 || layer >= config.num_hidden_layers) return {"unknown"};
  const std::string_view name = std::string_view(tap).substr(dot + 1);
  const auto& table = inputs_in_layer();
  const auto known = table.find(name);
  if (known == table.end()) return inputs_across_layers(config, layer, name);
  Names names;
  for (const std::string& input : known->second) names.push_back(of_layer(layer, input));
  return names;
}

}  // namespace fathom::verify
