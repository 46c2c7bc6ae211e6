#include "model/deepseek_v41/step.h"

#include <algorithm>
#include <cstring>

#include "model/blocks/ops.h"

namespace fathom::v41 {
namespace {

void compact_rows(std::span<const int64_t> kept, MatrixView<float>* view) {
  for (size_t to = 0; to < kept.size(); ++to)
    std::memmove(view->row(static_cast<int64_t>(to)).data(), view->row(kept[to]).data(),
                 static_cast<size_t>(view->cols) * sizeof(float));
  view->rows = static_cast<int64_t>(kept.size());
}

template <typename T>
void compact_column(std::span<const int64_t> kept, T* data) {
  for (size_t to = 0; to < kept.size(); ++to) data[to] = data[kept[to]];
}

}  // namespace

int64_t block_from(const TextConfig& config, int32_t layer, int64_t logits_from) {
  const std::vector<int32_t>& sources = config.kv_source_layer_ids;
  // A later kv source compresses every position, so every position must reach it.
  if (!sources.empty() && sources.back() > layer) return 0;
  const int64_t layers_above = config.num_hidden_layers - 1 - layer;
  return std::max<int64_t>(0, logits_from - (config.sliding_window - 1) * layers_above);
}

Step::Step(const TextConfig& config, std::vector<Segment> segments, kernels::Scratch& scratch)
    : segments_(std::move(segments)) {
  int64_t rows = 0;
  for (Segment& segment : segments_) {
    segment.row = rows;
    segment.count = static_cast<int64_t>(segment.tokens.size());
    segment.position = segment.state->token_count();
    rows += segment.count;
  }
  positions_ = {scratch.take<int64_t>(rows), rows};
  origin_ = {scratch.take<int64_t>(rows), rows};
  is_picture_ = {scratch.take<uint8_t>(rows), rows};
  streams = take_rows(scratch, rows, config.hc_mult * config.hidden_size);
  pre = take_rows(scratch, rows, config.hc_mult);
  main_hidden =
      take_rows(scratch, rows, std::ssize(config.dspark_target_layer_ids) * config.hidden_size);
  rope_main = take_rows(scratch, rows, config.qk_rope_head_dim);
  rope_compressed = take_rows(scratch, rows, config.qk_rope_head_dim);
  for (Segment& segment : segments_) {
    for (int64_t i = 0; i < segment.count; ++i) {
      const int64_t row = segment.row + i;
      positions_.data[row] = segment.position + i;
      origin_.data[row] = row;
      is_picture_.data[row] = segment.tokens[static_cast<size_t>(i)].embedding != nullptr;
    }
    segment.top_k = {scratch.take<int32_t>(segment.count * config.index_topk), segment.count,
                     config.index_topk};
    if (config.candidate_source_layer_id < 0) continue;
    const int64_t ratio =
        config.compress_ratios[static_cast<size_t>(config.candidate_source_layer_id)];
    const int64_t groups = (segment.position + segment.count) / ratio;
    const int64_t blocks = (groups + config.candidate_block_size - 1) / config.candidate_block_size;
    segment.candidates = {scratch.take<uint8_t>(segment.count * blocks), segment.count, blocks};
  }
}

void Step::keep_segment(Segment* segment, int64_t from, std::vector<int64_t>* kept) {
  const int64_t drop = std::clamp<int64_t>(from - segment->position, 0, segment->count);
  for (int64_t i = drop; i < segment->count; ++i) kept->push_back(segment->row + i);
  segment->count -= drop;
  segment->position += drop;
  segment->row = static_cast<int64_t>(kept->size()) - segment->count;
  segment->top_k = segment->top_k.rows_from(drop, segment->count);
  if (segment->candidates.data != nullptr)
    segment->candidates = segment->candidates.rows_from(drop, segment->count);
}

void Step::compact(std::span<const int64_t> kept, MatrixView<float>* x) {
  if (static_cast<int64_t>(kept.size()) == count()) return;
  for (MatrixView<float>* view : {&streams, &pre, &main_hidden, &rope_main, &rope_compressed, x})
    if (view != nullptr) compact_rows(kept, view);
  compact_column(kept, positions_.data);
  compact_column(kept, origin_.data);
  compact_column(kept, is_picture_.data);
  positions_.rows = origin_.rows = is_picture_.rows = static_cast<int64_t>(kept.size());
}

void Step::set_pre(MatrixView<const float> pre_in) {
  for (int64_t r = 0; r < pre.rows; ++r)
    std::copy_n(pre_in.row(r).data(), pre.cols, pre.row(r).data());
}

void trim_rows(const TextConfig& config, int32_t layer, Step& step, MatrixView<float>* x) {
  step.keep([&](const Segment& segment) { return block_from(config, layer, segment.logits_from); },
            x);
}

void Step::commit() {
  for (size_t i = 0; i < segments_.size(); ++i) {
    State& state = *segments_[i].state;
    std::span<const int32_t> ids;
    if (!engram.compressed_ids.empty()) ids = engram.compressed_ids[i];
    state.commit(static_cast<int64_t>(segments_[i].tokens.size()), ids);
    state.promise_logits_from(segments_[i].logits_from);
  }
}

}  // namespace fathom::v41
