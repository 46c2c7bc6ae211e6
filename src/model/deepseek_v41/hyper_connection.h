// Hyper-connections around a sublayer (spec §2.3, §2.4): S residual streams are collapsed into its
// input and its output is spread over them again.
#pragma once

#include <string_view>

#include "base/status.h"
#include "model/deepseek_v41/pass.h"
#include "model/deepseek_v41/step.h"

namespace fathom::v41 {

// Coefficients of one site, one row a token.
struct Mixes {
  MatrixView<float> pre;   // [n, S] collapse weights of the NEXT site
  MatrixView<float> post;  // [n, S]
  MatrixView<float> comb;  // [n, S·S] [source][destination]
};
Mixes take_mixes(const Pass& pass, int64_t rows, kernels::Scratch& scratch);

// `site` is "hc_attn" or "hc_ffn"; streams [n, S·D] are the site's input.
Status mix(const Pass& pass, int32_t layer, std::string_view site, const HcWeights& weights,
           MatrixView<const float> streams, const Mixes& mixes);

// x [n, D] = RMSNorm(Σ_s pre[s] · streams[s]).
void collapse_and_norm(const Pass& pass, MatrixView<const float> streams,
                       MatrixView<const float> pre, Vector norm, MatrixView<float> x);

// streams := post · y + combᵀ · streams.
void expand(const Pass& pass, MatrixView<const float> y, const Mixes& mixes,
            MatrixView<float> streams);

}  // namespace fathom::v41
