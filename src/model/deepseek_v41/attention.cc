#include "model/deepseek_v41/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/linear.h"
#include "model/deepseek_v41/compressor.h"
#include "model/deepseek_v41/indexer.h"

namespace fathom::v41 {
namespace {

constexpr int64_t kScaleBlockRows = 32;  // of an FP8 weight

MatrixView<const float> rope_table(const Pass& pass, int32_t layer, const Step& step) {
  return pass.role(layer).ratio == 0 ? step.rope_main : step.rope_compressed;
}

// Window rows that query i of a segment sees (§3.4; in a draft block §7.3).
kernels::RowRange seen_rows(const Pass& pass, const Segment& segment, const WindowRows& window,
                            int64_t i) {
  if (!segment.is_draft_block) return window.range(segment.position + i);
  const int64_t first = segment.position - pass.config.sliding_window;
  return window.range(std::max<int64_t>(0, first), segment.position + segment.count);
}

// o [n, H·Hd]: each query over its window and its selected groups (§3.12).
void attend_core(const Pass& pass, int32_t layer, MatrixView<const float> q, Step& step,
                 MatrixView<float> o) {
  const TextConfig& config = pass.config;
  const LayerRole& role = pass.role(layer);
  std::vector<kernels::RowRange> ranges;
  for (Segment& segment : step.segments()) {
    const WindowRows& window = segment.state->window(layer);
    ranges.clear();
    for (int64_t i = 0; i < segment.count; ++i)
      ranges.push_back(seen_rows(pass, segment, window, i));
    kernels::AttentionArgs args;
    args.q = q.rows_from(segment.row, segment.count);
    args.head_dim = config.head_dim;
    args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.head_dim)));
    args.window = window.view();
    args.window_range = ranges;
    args.sink = pass.layer(layer).attn.attn_sink;
    args.y = o.rows_from(segment.row, segment.count);
    args.round_bf16 = pass.ops.rounds();
    if (role.ratio > 0) {
      args.selected = segment.state->source(role.kv_source).compressed_kv.view();
      args.selected_index = segment.top_k;
    }
    if (segment.count > 0) kernels::attention(pass.ops.context(), args);
  }
}

// wo_a: one weight a group of heads, inputs not quantised (§3.13). Where a group begins inside a
// block of rows with one scale, the rows before it are computed too and left out.
void project_groups(const Pass& pass, const WeightView& wo_a, MatrixView<const float> o,
                    MatrixView<float> y) {
  const int64_t groups = pass.config.o_groups;
  const int64_t in = o.cols / groups;
  const int64_t out = y.cols / groups;
  const auto cut_rows = [&](int64_t g) { return g * out % kScaleBlockRows; };
  const auto group = [&](int64_t g) {
    return MatrixView<float>(y.data + g * out, y.rows, out, y.stride);
  };
  kernels::Scratch scratch(pass.workspace());
  std::vector<kernels::LinearArgs> products;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t rows = cut_rows(g) + out;
    products.push_back({.x = {o.data + g * in, o.rows, in, o.stride},
                        .weight = kernels::weight_rows(wo_a, g * out - cut_rows(g), rows),
                        .y = cut_rows(g) == 0 ? group(g) : take_rows(scratch, y.rows, rows),
                        .round_bf16 = pass.ops.rounds()});
  }
  kernels::linear_together(pass.ops.context(), products);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t r = 0; r < y.rows && cut_rows(g) > 0; ++r)
      std::ranges::copy(
          products[static_cast<size_t>(g)].y.row(r).subspan(static_cast<size_t>(cut_rows(g))),
          group(g).row(r).begin());
}

}  // namespace

void window_latents(const Pass& pass, int32_t layer, MatrixView<const float> x,
                    MatrixView<const float> table, MatrixView<float> kv) {
  const AttentionWeights& weights = pass.layer(layer).attn;
  pass.ops.quantised_linear(x, weights.wkv, kv);
  pass.ops.rms_norm(kv, weights.kv_norm, pass.config.rms_norm_eps, kv);
  pass.ops.rope(kv, pass.config.head_dim, table);
  pass.ops.quantise_cache(kernels::Quantiser::kFp8Block32, kv);
}

Status remember(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step) {
  {
    kernels::Scratch scratch(pass.workspace());
    const auto kv = take_rows(scratch, x.rows, pass.config.head_dim);
    window_latents(pass, layer, x, rope_table(pass, layer, step), kv);
    FATHOM_TRY(pass.taps.pass(layer, "window_kv", kv));
    for (Segment& segment : step.segments())
      segment.state->window(layer).append(segment.position,
                                          kv.rows_from(segment.row, segment.count));
  }
  return pass.role(layer).is_kv_source ? compress(pass, layer, x, step) : Status::ok();
}

Status attend(const Pass& pass, int32_t layer, MatrixView<const float> x, Step& step,
              MatrixView<float> out) {
  const AttentionWeights& weights = pass.layer(layer).attn;
  const TextConfig& config = pass.config;
  kernels::Scratch scratch(pass.workspace());
  const auto qr = take_rows(scratch, x.rows, config.q_lora_rank);
  const auto q = take_rows(scratch, x.rows, config.num_attention_heads * config.head_dim);
  const auto o = take_rows(scratch, x.rows, q.cols);
  const auto y = take_rows(scratch, x.rows, config.o_groups * config.o_lora_rank);

  pass.ops.quantised_linear(x, weights.wq_a, qr);
  pass.ops.rms_norm(qr, weights.q_norm, config.rms_norm_eps, qr);
  FATHOM_TRY(pass.taps.pass(layer, "qr", qr));
  if (pass.role(layer).is_index_source) FATHOM_TRY(select_groups(pass, layer, x, qr, step));

  pass.ops.quantised_linear(qr, weights.wq_b, q);
  pass.ops.rope(q, config.head_dim, rope_table(pass, layer, step));
  FATHOM_TRY(pass.taps.pass(layer, "q", q));
  attend_core(pass, layer, q, step, o);
  FATHOM_TRY(pass.taps.pass(layer, "o", o));

  pass.ops.rope_back(o, config.head_dim, rope_table(pass, layer, step));
  project_groups(pass, weights.wo_a, o, y);
  FATHOM_TRY(pass.taps.pass(layer, "wo_a_out", y));
  pass.ops.quantised_linear(y, weights.wo_b, out);
  return pass.taps.pass(layer, "attn_out", out);
}

}  // namespace fathom::v41
