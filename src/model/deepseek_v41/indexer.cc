#include "model/deepseek_v41/indexer.h"

#include <algorithm>
#include <cmath>

#include "kernels/index_score.h"

namespace fathom::v41 {
namespace {

// Floats of one tile of scores: 16 MB, so that a million groups still give tiles of four queries.
constexpr int64_t kScoreTileFloats = 4 << 20;

// The per-group form of the kept blocks, as the golden files hold it.
void show_candidates(const Pass& pass, int32_t layer, MatrixView<const uint8_t> keep,
                     int64_t groups) {
  if (!pass.taps.has_observer()) return;
  std::vector<int32_t> wide(static_cast<size_t>(keep.rows * groups));
  for (int64_t r = 0; r < keep.rows; ++r)
    for (int64_t j = 0; j < groups; ++j)
      wide[static_cast<size_t>(r * groups + j)] =
          keep.row(r)[static_cast<size_t>(j / pass.config.candidate_block_size)];
  pass.taps.show(layer, "candidates", MatrixView<int32_t>(wide.data(), keep.rows, groups));
}

// Rows [first, first + count) of a segment: q [count, Ih·Id] and weight [count, Ih] are theirs.
void select_tile(const Pass& pass, int32_t layer, MatrixView<const float> q,
                 MatrixView<const float> weight, Segment& segment, int64_t first) {
  const LayerRole& role = pass.role(layer);
  const kernels::Context& context = pass.ops.context();
  const kernels::RowsView keys = segment.state->source(role.kv_source).index_k.view();
  kernels::Scratch scratch(pass.workspace());
  const auto score = take_rows(scratch, q.rows, keys.rows);
  std::vector<int64_t> visible;
  for (int64_t i = 0; i < q.rows; ++i)
    visible.push_back((segment.position + first + i + 1) / role.ratio);

  kernels::index_score(
      context, {.q = q, .weight = weight, .keys = keys, .visible = visible, .score = score});
  pass.taps.show(layer, "index_score", score);
  const auto candidates = segment.candidates.data == nullptr
                              ? segment.candidates
                              : segment.candidates.rows_from(first, q.rows);
  if (role.is_candidate_source) {
    kernels::candidate_blocks(context, {.score = score,
                                        .visible = visible,
                                        .block_size = pass.config.candidate_block_size,
                                        .blocks_max = pass.config.candidate_topk_blocks,
                                        .keep = candidates});
    show_candidates(pass, layer, candidates, keys.rows);
  }
  kernels::SelectTopArgs args;
  args.score = score;
  args.visible = visible;
  args.block_size = pass.config.candidate_block_size;
  args.index = segment.top_k.rows_from(first, q.rows);
  if (role.uses_candidates) args.candidates = candidates;
  kernels::select_top(context, args);
  pass.taps.show(layer, "topk", args.index);
}

}  // namespace

Status select_groups(const Pass& pass, int32_t layer, MatrixView<const float> x,
                     MatrixView<const float> query_latent, Step& step) {
  const IndexerWeights& weights = *pass.layer(layer).attn.indexer;
  const TextConfig& config = pass.config;
  kernels::Scratch scratch(pass.workspace());
  const auto q = take_rows(scratch, x.rows, config.index_n_heads * config.index_head_dim);
  const auto weight = take_rows(scratch, x.rows, config.index_n_heads);

  pass.ops.quantised_linear(query_latent, weights.wq_b, q);
  pass.ops.rope(q, config.index_head_dim, step.rope_compressed);
  pass.ops.quantise_cache(kernels::Quantiser::kFp4Block32, q);
  FATHOM_TRY(pass.taps.pass(layer, "index_q", q));

  pass.ops.linear(x, weights.weights_proj, weight);
  const auto kappa = static_cast<float>(
      1 / std::sqrt(static_cast<double>(config.index_head_dim * config.index_n_heads)));
  for (float& value : std::span(weight.data, static_cast<size_t>(weight.rows * weight.cols)))
    value *= kappa;
  FATHOM_TRY(pass.taps.pass(layer, "index_w", weight));

  for (Segment& segment : step.segments()) {
    const int64_t groups = segment.state->source(pass.role(layer).kv_source).index_k.count();
    // An observer sees the scores of all queries as one tensor.
    const int64_t tile =
        pass.taps.has_observer()
            ? segment.count
            : std::max<int64_t>(1, kScoreTileFloats / std::max<int64_t>(1, groups));
    for (int64_t first = 0; first < segment.count; first += tile) {
      const int64_t count = std::min(tile, segment.count - first);
      select_tile(pass, layer, q.rows_from(segment.row + first, count),
                  weight.rows_from(segment.row + first, count), segment, first);
    }
  }
  return Status::ok();
}

}  // namespace fathom::v41
