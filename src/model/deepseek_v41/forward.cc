// The forward pass in the order of spec §0. What a line does is in the file of its name; trimming
// is the one thing that is not in the paper's order, and changes no bit (§3.11).
#include "model/deepseek_v41/forward.h"

#include "kernels/rope.h"
#include "model/deepseek_v41/attention.h"
#include "model/deepseek_v41/dspark.h"
#include "model/deepseek_v41/embedding.h"
#include "model/deepseek_v41/engram.h"
#include "model/deepseek_v41/hyper_connection.h"
#include "model/deepseek_v41/moe.h"

namespace fathom::v41 {
namespace {

Status run_layer(const Pass& pass, int32_t l, bool trim, Step& step) {
  if (pass.role(l).engram >= 0) FATHOM_TRY(inject_engram(pass, l, step));
  return run_block(pass, l, trim, step);
}

}  // namespace

Status run_block(const Pass& pass, int32_t l, bool trim, Step& step) {
  const BlockWeights& w = pass.layer(l);
  kernels::Scratch scratch(pass.workspace());
  FATHOM_TRY(pass.taps.pass(l, "x_in", step.streams));
  FATHOM_TRY(pass.taps.pass(l, "pre_in", step.pre));
  FATHOM_TRY(take_main_hidden(pass, l, step));

  auto x = take_rows(scratch, step.count(), pass.config.hidden_size);
  collapse_and_norm(pass, step.streams, step.pre, w.attn_norm, x);
  FATHOM_TRY(pass.taps.pass(l, "attn_norm", x));
  FATHOM_TRY(remember(pass, l, x, step));
  if (trim) trim_rows(pass.config, l, step, &x);
  if (step.count() == 0) return Status::ok();

  const auto y = take_rows(scratch, step.count(), pass.config.hidden_size);
  const Mixes attn = take_mixes(pass, step.count(), scratch);
  const Mixes ffn = take_mixes(pass, step.count(), scratch);
  FATHOM_TRY(mix(pass, l, "hc_attn", w.hc_attn, step.streams, attn));
  FATHOM_TRY(attend(pass, l, x, step, y));
  expand(pass, y, attn, step.streams);
  FATHOM_TRY(pass.taps.pass(l, "x_mid", step.streams));

  FATHOM_TRY(mix(pass, l, "hc_ffn", w.hc_ffn, step.streams, ffn));
  collapse_and_norm(pass, step.streams, attn.pre, w.ffn_norm, x);
  FATHOM_TRY(pass.taps.pass(l, "ffn_norm", x));
  FATHOM_TRY(mix_experts(pass, l, x, step, y));
  expand(pass, y, ffn, step.streams);
  FATHOM_TRY(pass.taps.pass(l, "x_out", step.streams));
  step.set_pre(ffn.pre);
  return Status::ok();
}

Status forward(const Pass& pass, const ForwardOptions& options, std::vector<Segment> segments,
               std::span<const MatrixView<float>> logits) {
  kernels::Scratch scratch(pass.workspace());
  Step step(pass.config, std::move(segments), scratch);
  kernels::rope_table(step.positions(), pass.main_frequencies, step.rope_main);
  kernels::rope_table(step.positions(), pass.compressed_frequencies, step.rope_compressed);
  FATHOM_TRY(look_up_engram(pass, step));
  FATHOM_TRY(embed(pass, step));
  for (int32_t l = 0; l < pass.config.num_hidden_layers && step.count() > 0; ++l) {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
      return error(Code::kCancelled, "stopped before layer {}", l);
    FATHOM_TRY(run_layer(pass, l, options.trim_prefill, step));
  }
  FATHOM_TRY(head(pass, step, logits));
  step.commit();
  return Status::ok();
}

Status draft(const Pass& pass, State& state, TokenId next, const DraftChoice& choose,
             const CancelFlag* cancel) {
  kernels::Scratch scratch(pass.workspace());
  const auto h = take_rows(scratch, pass.config.dspark_block_size, pass.config.hidden_size);
  FATHOM_TRY(seed_drafts(pass, state));
  FATHOM_TRY(draft_block(pass, state, next, cancel, h));
  return draft_tokens(pass, next, h, choose);
}

}  // namespace fathom::v41
