#include "model/deepseek_v41/dspark.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/hyper_connection.h"
#include "kernels/rope.h"
#include "model/deepseek_v41/attention.h"
#include "model/deepseek_v41/embedding.h"
#include "model/deepseek_v41/forward.h"

namespace fathom::v41 {
namespace {

constexpr float kNever = -1e30F;  // a logit that is never drawn, and finite

// A stage's window as golden files hold it, position p in row p mod W; what an observer wrote is
// what the drafts see.
Status show_window(const Pass& pass, int32_t layer, State& state) {
  if (!pass.taps.has_observer()) return Status::ok();
  const int64_t size = pass.config.sliding_window;
  const int64_t end = state.token_count();
  kernels::Scratch scratch(pass.workspace());
  const auto ring = take_rows(scratch, size, pass.config.head_dim);
  std::fill_n(ring.data, ring.rows * ring.cols, 0.0F);
  WindowRows& window = state.window(layer);
  for (int64_t p = std::max<int64_t>(0, end - size); p < end; ++p)
    window.read(p, ring.row(p % size));
  FATHOM_TRY(pass.taps.pass(layer, "window_ring", ring));
  for (int64_t p = std::max<int64_t>(0, end - size); p < end; ++p)
    window.write(p, ring.row(p % size));
  return Status::ok();
}

// Tokens whose Engram rows nobody knows can't be run, so they are not drafted.
void rule_out_unknown(const Pass& pass, std::span<float> logits) {
  if (pass.token_map.empty()) return;
  std::ranges::fill(logits.subspan(std::min(pass.token_map.size(), logits.size())), kNever);
}

}  // namespace

Status take_main_hidden(const Pass& pass, int32_t layer, Step& step) {
  const std::vector<int32_t>& targets = pass.config.dspark_target_layer_ids;
  const auto target = std::find(targets.begin(), targets.end(), layer);
  if (target == targets.end()) return Status::ok();
  if (pass.weights.mtp.empty() && !pass.taps.has_observer()) return Status::ok();
  const int64_t width = pass.config.hidden_size;
  kernels::hc_mean(pass.ops.context(),
                   {.x = step.streams,
                    .y = {step.main_hidden.data + (target - targets.begin()) * width, step.count(),
                          width, step.main_hidden.stride},
                    .round_bf16 = pass.ops.rounds()});
  if (target + 1 != targets.end()) return Status::ok();
  FATHOM_TRY(pass.taps.pass("main_hidden", step.main_hidden));
  for (const Segment& segment : step.segments()) {
    WindowRows* kept = segment.state->main_hidden();
    if (kept == nullptr || segment.count == 0) continue;
    // A draft behind any later position sees no more than the last W rows.
    const int64_t skipped = std::max<int64_t>(0, segment.count - pass.config.sliding_window);
    kept->append(segment.position + skipped,
                 step.main_hidden.rows_from(segment.row + skipped, segment.count - skipped));
  }
  return Status::ok();
}

Status seed_drafts(const Pass& pass, State& state) {
  const TextConfig& config = pass.config;
  const int64_t end = state.token_count();
  for (size_t i = 0; i < pass.weights.mtp.size(); ++i)
    state.window(pass.stage_layer(i)).truncate(end);  // what a broken draft left
  const int64_t seeded = state.window(pass.stage_layer(0)).end_position();
  const int64_t first = std::max({int64_t{0}, end - config.sliding_window, seeded});
  if (first == end) return Status::ok();

  kernels::Scratch scratch(pass.workspace());
  const int64_t count = end - first;
  const auto main_hidden =
      take_rows(scratch, count, std::ssize(config.dspark_target_layer_ids) * config.hidden_size);
  const auto main_x = take_rows(scratch, count, config.hidden_size);
  const auto kv = take_rows(scratch, count, config.head_dim);
  const auto table = take_rows(scratch, count, config.qk_rope_head_dim);
  std::vector<int64_t> positions;
  for (int64_t p = first; p < end; ++p) {
    state.main_hidden()->read(p, main_hidden.row(p - first));
    positions.push_back(p);
  }
  FATHOM_TRY(pass.taps.pass("draft.main_hidden", main_hidden));
  const StageWeights& front = pass.weights.mtp.front();
  pass.ops.quantised_linear(main_hidden, *front.main_proj, main_x);
  pass.ops.rms_norm(main_x, front.main_norm, config.rms_norm_eps, main_x);
  FATHOM_TRY(pass.taps.pass("draft.main_x", main_x));
  kernels::rope_table(positions, pass.main_frequencies, table);
  for (size_t i = 0; i < pass.weights.mtp.size(); ++i) {
    window_latents(pass, pass.stage_layer(i), main_x, table, kv);
    state.window(pass.stage_layer(i)).append(first, kv);
  }
  return Status::ok();
}

Status draft_block(const Pass& pass, State& state, TokenId next, const CancelFlag* cancel,
                   MatrixView<float> h) {
  kernels::Scratch scratch(pass.workspace());
  std::vector<InputToken> tokens(static_cast<size_t>(h.rows),
                                 {.token = pass.config.dspark_noise_token_id});
  tokens.front().token = next;
  Segment segment;
  segment.state = &state;
  segment.tokens = tokens;
  segment.is_draft_block = true;
  Step step(pass.config, {segment}, scratch);
  kernels::rope_table(step.positions(), pass.main_frequencies, step.rope_main);
  FATHOM_TRY(embed(pass, step));
  for (size_t i = 0; i < pass.weights.mtp.size(); ++i) {
    const int32_t layer = pass.stage_layer(i);
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed))
      return error(Code::kCancelled, "stopped before draft stage {}", i);
    FATHOM_TRY(show_window(pass, layer, state));
    FATHOM_TRY(run_block(pass, layer, /*trim=*/false, step));
    state.window(layer).truncate(state.token_count());
  }
  kernels::hc_collapse(
      pass.ops.context(),
      {.x = step.streams, .pre = step.pre, .y = h, .round_bf16 = pass.ops.rounds()});
  return pass.taps.pass("draft.h", h);
}

Status draft_tokens(const Pass& pass, TokenId next, MatrixView<const float> h,
                    const DraftChoice& choose) {
  const TextConfig& config = pass.config;
  const StageWeights& back = pass.weights.mtp.back();
  const WeightView& markov_embed = *back.markov_embed;
  kernels::Scratch scratch(pass.workspace());
  const auto normed = take_rows(scratch, h.rows, config.hidden_size);
  const auto base = take_rows(scratch, h.rows, config.vocab_size);
  pass.ops.rms_norm(h, back.norm, config.rms_norm_eps, normed);
  pass.ops.linear(normed, pass.weights.head, base, Output::kFull);
  FATHOM_TRY(pass.taps.pass("draft.base_logits", base));

  const auto e = take_rows(scratch, 1, config.dspark_markov_rank);
  const auto h_and_e = take_rows(scratch, 1, config.hidden_size + config.dspark_markov_rank);
  const auto logits = take_rows(scratch, 1, config.vocab_size);
  const auto confidence = take_rows(scratch, 1, 1);
  TokenId previous = next;
  pass.taps.show("draft.ids", {&previous, 1, 1});
  for (int64_t i = 0; i < h.rows; ++i) {
    kernels::embed(
        {static_cast<const uint16_t*>(markov_embed.data), markov_embed.rows, markov_embed.cols},
        {&previous, 1}, e);
    FATHOM_TRY(pass.taps.pass("draft.markov_embed", e));
    pass.ops.linear(e, *back.markov_head, logits, Output::kFull);
    std::ranges::transform(base.row(i), logits.row(0), logits.row(0).begin(), std::plus<float>());
    FATHOM_TRY(pass.taps.pass("draft.logits", logits));
    std::ranges::copy(e.row(0), std::ranges::copy(h.row(i), h_and_e.row(0).begin()).out);
    pass.ops.linear(h_and_e, *back.confidence_head_proj, confidence, Output::kFull);
    FATHOM_TRY(pass.taps.pass("draft.confidence", confidence));
    rule_out_unknown(pass, logits.row(0));
    const auto draft = choose({logits.row(0), 1 / (1 + std::exp(-confidence.row(0).front()))});
    if (!draft) break;
    previous = *draft;
    pass.taps.show("draft.ids", {&previous, 1, 1});
  }
  return Status::ok();
}

}  // namespace fathom::v41
