#include "model/deepseek_v41/hyper_connection.h"

#include "kernels/hyper_connection.h"

namespace fathom::v41 {

Mixes take_mixes(const Pass& pass, int64_t rows, kernels::Scratch& scratch) {
  const int64_t streams = pass.config.hc_mult;
  return {.pre = take_rows(scratch, rows, streams),
          .post = take_rows(scratch, rows, streams),
          .comb = take_rows(scratch, rows, streams * streams)};
}

Status mix(const Pass& pass, int32_t layer, std::string_view site, const HcWeights& weights,
           MatrixView<const float> streams, const Mixes& mixes) {
  kernels::hc_mix(pass.ops.context(),
                  {.x = streams,
                   .fn = weights.fn,
                   .base = weights.base,
                   .scale = weights.scale,
                   .sinkhorn_iterations = static_cast<int>(pass.config.hc_sinkhorn_iters),
                   .hc_eps = static_cast<float>(pass.config.hc_eps),
                   .norm_eps = static_cast<float>(pass.config.rms_norm_eps),
                   .pre = mixes.pre,
                   .post = mixes.post,
                   .comb = mixes.comb});
  FATHOM_TRY(pass.taps.pass(layer, site, "pre", mixes.pre));
  FATHOM_TRY(pass.taps.pass(layer, site, "post", mixes.post));
  return pass.taps.pass(layer, site, "comb", mixes.comb);
}

void collapse_and_norm(const Pass& pass, MatrixView<const float> streams,
                       MatrixView<const float> pre, Vector norm, MatrixView<float> x) {
  kernels::hc_collapse(pass.ops.context(),
                       {.x = streams, .pre = pre, .y = x, .round_bf16 = pass.ops.rounds()});
  pass.ops.rms_norm(x, norm, pass.config.rms_norm_eps, x);
}

void expand(const Pass& pass, MatrixView<const float> y, const Mixes& mixes,
            MatrixView<float> streams) {
  kernels::hc_expand(pass.ops.context(), {.y = y,
                                          .x = streams,
                                          .post = mixes.post,
                                          .comb = mixes.comb,
                                          .out = streams,
                                          .round_bf16 = pass.ops.rounds()});
}

}  // namespace fathom::v41
