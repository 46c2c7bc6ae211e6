// Hyper-connections (mHC): coefficients of a site, collapse and expand of the S streams. Spec §2.3,
// §2.4.
#pragma once

#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

inline constexpr int64_t kStreamsMax = 8;  // S; the released model has 4

//   x      [T, S·D]      f32       stream-major: channel d of stream s at s·D + d
//   fn     [(2+S)·S, S·D] f32
//   base   [(2+S)·S]     f32
//   scale  [3]           f32       of pre, post and comb
//   pre    [T, S]        f32  out  collapse weights of the NEXT site
//   post   [T, S]        f32  out
//   comb   [T, S·S]      f32  out  [source][destination]; columns sum to 1 after the last step
//
// Runs of eight f32 products are added in double, the mean of squares in double. Against ref: rel
// 4e-6 of a coefficient's logit of size 5 (2^-24 of it, and own exp; sinkhorn damps it).
struct HcMixArgs {
  MatrixView<const float> x;
  MatrixView<const float> fn;
  std::span<const float> base;
  std::span<const float> scale;
  int sinkhorn_iterations = 20;
  float hc_eps = 1e-6f;
  float norm_eps = 1e-20f;
  MatrixView<float> pre;
  MatrixView<float> post;
  MatrixView<float> comb;
};
void hc_mix(const Context& context, const HcMixArgs& args);

//   y[t][d] = Σ_s pre[t][s] · x[t][s·D + d], s ascending in f32, no fma. Against ref: equal.
struct HcCollapseArgs {
  MatrixView<const float> x;    // [T, S·D]
  MatrixView<const float> pre;  // [T, S]
  MatrixView<float> y;          // [T, D] out
  bool round_bf16 = false;
};
void hc_collapse(const Context& context, const HcCollapseArgs& args);

//   out[t][k·D + d] = post[t][k] · y[t][d] + Σ_j comb[t][j·S + k] · x[t][j·D + d]; the sum over the
// source stream j first, ascending, f32, no fma. Against ref: equal.
struct HcExpandArgs {
  MatrixView<const float> y;     // [T, D] the sublayer's output
  MatrixView<const float> x;     // [T, S·D] the site's input
  MatrixView<const float> post;  // [T, S]
  MatrixView<const float> comb;  // [T, S·S]
  MatrixView<float> out;         // [T, S·D] out; may be x itself
  bool round_bf16 = false;
};
void hc_expand(const Context& context, const HcExpandArgs& args);

//   y[t][d] = (Σ_s x[t][s·D + d]) / S: the DSpark conditioning of one layer (§7.2).
struct HcMeanArgs {
  MatrixView<const float> x;  // [T, S·D]
  MatrixView<float> y;        // [T, D] out
  bool round_bf16 = false;
};
void hc_mean(const Context& context, const HcMeanArgs& args);

namespace ref {
void hc_mix(const HcMixArgs& args);
void hc_collapse(const HcCollapseArgs& args);
void hc_expand(const HcExpandArgs& args);
void hc_mean(const HcMeanArgs& args);
}  // namespace ref

}  // namespace fathom::kernels
