#include "model/deepseek_v41/draft_info.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace fathom::v41 {
namespace {

int64_t weight_bytes(std::initializer_list<const WeightView*> weights) {
  int64_t bytes = 0;
  for (const WeightView* w : weights) bytes += w->rows * w->cols * dtype_bytes(w->dtype);
  return bytes;
}

// Weights that a layer's step of `rows` reads, each row routed on its own.
double block_bytes(const TextConfig& config, const BlockWeights& block, double experts_per_token,
                   int64_t rows) {
  const AttentionWeights& a = block.attn;
  const SharedExpertWeights& shared = block.ffn.shared_experts;
  const int64_t dense = weight_bytes({&a.wq_a, &a.wq_b, &a.wkv, &a.wo_a, &a.wo_b, &shared.w1,
                                      &shared.w2, &shared.w3, &block.ffn.gate.weight});
  constexpr double kFp4Bytes = 0.5 + 1.0 / 32;  // code and scale
  const double expert =
      3.0 * kFp4Bytes * static_cast<double>(config.moe_intermediate_size * config.hidden_size);
  const auto count = static_cast<double>(block.ffn.expert_count);
  const double used =
      count * (1 - std::pow(1 - experts_per_token / count, static_cast<double>(rows)));
  return static_cast<double>(dense) + used * expert;
}

}  // namespace

void add_draft_info(const TextConfig& config, const Weights& weights, int64_t step_rows_max,
                    ModelInfo* info) {
  if (weights.mtp.empty()) return;
  info->draft_tokens_max = std::min(config.dspark_block_size, step_rows_max - 1);
  const auto head = static_cast<double>(weight_bytes({&weights.head}));
  for (int64_t rows = 1; rows <= info->draft_tokens_max + 1; ++rows) {
    double bytes = head;
    for (const BlockWeights& layer : weights.layers)
      bytes += block_bytes(config, layer, static_cast<double>(config.num_experts_per_tok), rows);
    info->step_bytes.push_back(bytes);
  }
  const auto block = static_cast<double>(config.dspark_block_size);
  const StageWeights& back = weights.mtp.back();
  info->draft_bytes = head + block * static_cast<double>(weight_bytes({&*back.markov_head})) +
                      static_cast<double>(weight_bytes({&*weights.mtp.front().main_proj}));
  for (const StageWeights& stage : weights.mtp)
    info->draft_bytes +=
        block_bytes(config, stage.block, static_cast<double>(config.dspark_num_experts_per_tok),
                    config.dspark_block_size);
}

}  // namespace fathom::v41
