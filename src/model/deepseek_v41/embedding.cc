#include "model/deepseek_v41/embedding.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/hyper_connection.h"
#include "model/deepseek_v41/hyper_connection.h"

namespace fathom::v41 {

Status embed(const Pass& pass, Step& step) {
  const int64_t width = pass.config.hidden_size;
  const WeightView& table = pass.weights.embed;
  kernels::Scratch scratch(pass.workspace());
  const auto rows = take_rows(scratch, step.count(), width);
  std::vector<TokenId> tokens;
  for (const Segment& segment : step.segments())
    for (const InputToken& input : segment.tokens) tokens.push_back(input.token);
  kernels::embed({static_cast<const uint16_t*>(table.data), table.rows, table.cols}, tokens, rows);
  for (const Segment& segment : step.segments())
    for (int64_t i = 0; i < segment.count; ++i)
      if (const float* picture = segment.tokens[static_cast<size_t>(i)].embedding)
        std::copy_n(picture, width, rows.row(segment.row + i).data());
  FATHOM_TRY(pass.taps.pass("embed", rows));
  for (int64_t r = 0; r < step.count(); ++r) {
    for (int64_t s = 0; s < pass.config.hc_mult; ++s) {
      std::copy_n(rows.row(r).data(), width, step.streams.row(r).data() + s * width);
      step.pre.row(r)[static_cast<size_t>(s)] = s == 0 ? 1.0F : 0.0F;
    }
  }
  return Status::ok();
}

Status head(const Pass& pass, Step& step, std::span<const MatrixView<float>> logits) {
  step.keep([](const Segment& segment) { return segment.logits_from; }, nullptr);
  if (step.count() == 0) return Status::ok();
  kernels::Scratch scratch(pass.workspace());
  const auto x = take_rows(scratch, step.count(), pass.config.hidden_size);
  kernels::hc_collapse(
      pass.ops.context(),
      {.x = step.streams, .pre = step.pre, .y = x, .round_bf16 = pass.ops.rounds()});
  FATHOM_TRY(pass.taps.pass("final_h", x));
  pass.ops.rms_norm(x, pass.weights.norm, pass.config.rms_norm_eps, x);
  FATHOM_TRY(pass.taps.pass("final_norm", x));
  for (size_t i = 0; i < logits.size(); ++i) {
    const Segment& segment = step.segments()[i];
    if (segment.count == 0) continue;
    pass.ops.linear(x.rows_from(segment.row, segment.count), pass.weights.head, logits[i],
                    Output::kFull);
    FATHOM_TRY(pass.taps.pass("logits", logits[i]));
  }
  return Status::ok();
}

}  // namespace fathom::v41
