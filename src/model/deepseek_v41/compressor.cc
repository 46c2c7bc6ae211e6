#include "model/deepseek_v41/compressor.h"

#include <algorithm>

#include "kernels/compress.h"
#include "kernels/rope.h"

namespace fathom::v41 {
namespace {

// The groups that a step completes, sequence after sequence.
struct Groups {
  MatrixView<float> latent;        // [groups, Hd]
  std::vector<int64_t> counts;     // of each segment
  std::vector<int64_t> positions;  // of a group: that of its first token
};

// Which groups become complete; a group stands at its first token (§3.6).
Groups plan_groups(const Pass& pass, int64_t ratio, Step& step, kernels::Scratch& scratch) {
  Groups groups;
  for (const Segment& segment : step.segments()) {
    const int64_t first = segment.position / ratio;
    const int64_t end = (segment.position + segment.count) / ratio;
    groups.counts.push_back(end - first);
    for (int64_t j = first; j < end; ++j) groups.positions.push_back(j * ratio);
  }
  groups.latent =
      take_rows(scratch, static_cast<int64_t>(groups.positions.size()), pass.config.head_dim);
  return groups;
}

// The rows that fill groups, first those that waited for it, to `to`.
void gather_groups(MatrixView<const float> waiting, MatrixView<const float> rows,
                   int64_t group_rows, float* to) {
  if (group_rows == 0) return;
  for (int64_t r = 0; r < waiting.rows; ++r) to = std::ranges::copy(waiting.row(r), to).out;
  for (int64_t r = 0; r < group_rows - waiting.rows; ++r)
    to = std::ranges::copy(rows.row(r), to).out;
}

// Ratio above 1: softmax pooling of k by g over each group (§3.5), in f32 until the norm.
void pool(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step, Groups* groups) {
  const CompressorWeights& weights = *pass.layer(layer).attn.compressor;
  const int64_t ratio = pass.role(layer).ratio;
  const int64_t width = pass.config.head_dim;
  kernels::Scratch scratch(pass.workspace());
  const auto k = take_rows(scratch, x.rows, width);
  const auto g = take_rows(scratch, x.rows, width);
  pass.ops.linear(x, weights.wkv, k, Output::kFull);
  pass.ops.linear(x, *weights.wgate, g, Output::kFull);
  const auto full_k = take_rows(scratch, groups->latent.rows * ratio, width);
  const auto full_g = take_rows(scratch, groups->latent.rows * ratio, width);
  int64_t at = 0;
  for (size_t i = 0; i < groups->counts.size(); ++i) {
    const Segment& segment = step.segments()[i];
    SourceState& source = segment.state->source(layer);
    const int64_t waiting = segment.position % ratio;
    const int64_t group_rows = groups->counts[i] * ratio;
    const auto new_k = k.rows_from(segment.row, segment.count);
    const auto new_g = g.rows_from(segment.row, segment.count);
    gather_groups(source.k.newest(waiting), new_k, group_rows, full_k.data + at * width);
    gather_groups(source.g.newest(waiting), new_g, group_rows, full_g.data + at * width);
    source.k.append(new_k);
    source.g.append(new_g);
    at += group_rows;
  }
  if (groups->latent.rows == 0) return;
  kernels::pool_groups(pass.ops.context(), {.k = full_k,
                                            .g = full_g,
                                            .ratio = ratio,
                                            .y = groups->latent,
                                            .round_bf16 = pass.ops.rounds()});
}

}  // namespace

Status compress(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step) {
  const AttentionWeights& weights = pass.layer(layer).attn;
  const TextConfig& config = pass.config;
  kernels::Scratch scratch(pass.workspace());
  Groups groups = plan_groups(pass, pass.role(layer).ratio, step, scratch);
  const MatrixView<float> latent = groups.latent;
  const auto key = take_rows(scratch, latent.rows, config.index_head_dim);
  const auto table = take_rows(scratch, latent.rows, config.qk_rope_head_dim);

  if (pass.role(layer).ratio == 1)
    pass.ops.linear(x, weights.compressor->wkv, latent);
  else
    pool(pass, layer, x, step, &groups);
  if (latent.rows == 0) return Status::ok();
  pass.ops.rms_norm(latent, weights.compressor->norm, config.rms_norm_eps, latent);
  FATHOM_TRY(pass.taps.pass(layer, "latent", latent));
  kernels::rope_table(groups.positions, pass.compressed_frequencies, table);

  pass.ops.linear(latent, *weights.indexer->wk, key);
  pass.ops.rms_norm(key, weights.indexer->k_norm, config.rms_norm_eps, key);
  pass.ops.rope(key, config.index_head_dim, table);
  pass.ops.quantise_cache(kernels::Quantiser::kFp4Block32, key);
  FATHOM_TRY(pass.taps.pass(layer, "index_k", key));

  pass.ops.rope(latent, config.head_dim, table);
  pass.ops.quantise_cache(kernels::Quantiser::kFp4Block16, latent);
  FATHOM_TRY(pass.taps.pass(layer, "compressed_kv", latent));

  int64_t at = 0;
  for (size_t i = 0; i < groups.counts.size(); at += groups.counts[i++]) {
    SourceState& source = step.segments()[i].state->source(layer);
    source.index_k.append(key.rows_from(at, groups.counts[i]));
    source.compressed_kv.append(latent.rows_from(at, groups.counts[i]));
  }
  return Status::ok();
}

}  // namespace fathom::v41
