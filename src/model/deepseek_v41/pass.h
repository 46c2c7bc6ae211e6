// What every part of a forward pass needs beside its rows: one value a Model, handed down by
// reference. Attention, indexer, experts and Engram are functions of (Pass, layer, rows).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/expert_store.h"
#include "model/blocks/ops.h"
#include "model/blocks/taps.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/engram_hash.h"
#include "model/deepseek_v41/weights.h"

namespace fathom::v41 {

struct Pass {
  const TextConfig& config;
  const Weights& weights;
  ExpertStore& experts;
  Ops ops;
  Taps taps;
  std::vector<float> main_frequencies;        // [R / 2], layers of ratio 0
  std::vector<float> compressed_frequencies;  // [R / 2], the others
  std::vector<LayerRole> roles;               // [L + stages]
  std::vector<EngramHashing> engram;          // one an Engram layer
  std::vector<int32_t> token_map;             // token -> compressed id; empty without Engram

  // A DSpark stage i is a layer like the others, L + i: window attention only, no Engram (§7.1).
  int32_t stage_layer(size_t i) const { return static_cast<int32_t>(weights.layers.size() + i); }
  bool is_stage(int32_t l) const { return l >= stage_layer(0); }
  const BlockWeights& layer(int32_t l) const {
    const auto i = static_cast<size_t>(l);
    return is_stage(l) ? weights.mtp[i - weights.layers.size()].block : weights.layers[i];
  }
  int64_t experts_per_token(int32_t l) const {
    return is_stage(l) ? config.dspark_num_experts_per_tok : config.num_experts_per_tok;
  }
  const LayerRole& role(int32_t l) const { return roles[static_cast<size_t>(l)]; }
  kernels::Workspace& workspace() const { return ops.context().workspace; }
};

}  // namespace fathom::v41
