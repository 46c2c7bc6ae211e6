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
  std::vector<LayerRole> roles;               // [L]
  std::vector<EngramHashing> engram;          // one an Engram layer
  std::vector<int32_t> token_map;             // token -> compressed id; empty without Engram

  const BlockWeights& layer(int32_t l) const { return weights.layers[static_cast<size_t>(l)]; }
  const LayerRole& role(int32_t l) const { return roles[static_cast<size_t>(l)]; }
  kernels::Workspace& workspace() const { return ops.context().workspace; }
};

}  // namespace fathom::v41
