#include "kernels/hyper_connection.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/lanes/hyper_connection.h"
#include "kernels/dispatch.h"

namespace fathom::kernels {
namespace {

// The sum over S·D is made of pieces of this length, added in order: with the 24 rows of fn a piece
// takes 96 KB and stays in L2 while all tokens of a tile pass over it.
constexpr int64_t kPiece = 1024;
constexpr int64_t kTile = 16;
constexpr int64_t kGroup = 8;  // fn rows that one pass over x serves

void check_streams(int64_t streams, int64_t x_cols, int64_t width) {
  FATHOM_CHECK(streams >= 1 && streams <= kStreamsMax && x_cols == streams * width,
               "{} streams of {} channels in rows of {}", streams, width, x_cols);
}

// dots [T, n] of all rows with all fn rows, in double; the sum of squares is the last column.
void mix_dots(const Context& context, const HcMixArgs& args, MatrixView<double> dots) {
  const auto add_dots = FATHOM_PICK(context.isa, add_dots);
  const auto sum_sq = FATHOM_PICK(context.isa, sum_of_squares);
  const int64_t rows_fn = args.fn.rows;
  const int64_t tiles = (args.x.rows + kTile - 1) / kTile;
  // Few tokens: split the fn rows in groups, too, so that decode uses every thread.
  const int64_t groups = tiles >= 4 ? 1 : (rows_fn + kGroup - 1) / kGroup;
  context.pool.parallel_for(tiles * groups, [&](int64_t item, int) {
    const int64_t t0 = item / groups * kTile;
    const int64_t t1 = std::min(t0 + kTile, args.x.rows);
    const int64_t i0 = groups == 1 ? 0 : item % groups * kGroup;
    const int64_t count = groups == 1 ? rows_fn : std::min(kGroup, rows_fn - i0);
    for (int64_t t = t0; t < t1; ++t) std::fill_n(&dots.row(t)[i0], count, 0.0);
    for (int64_t d = 0; d < args.x.cols; d += kPiece) {
      const int64_t n = std::min(kPiece, args.x.cols - d);
      for (int64_t t = t0; t < t1; ++t)
        add_dots(&args.x.row(t)[d], &args.fn.row(i0)[d], args.fn.stride, count, n,
                 &dots.row(t)[i0]);
    }
    for (int64_t t = t0; i0 == 0 && t < t1; ++t)
      dots.row(t)[rows_fn] = sum_sq(args.x.row(t).data(), args.x.cols);
  });
}

}  // namespace

void hc_mix(const Context& context, const HcMixArgs& args) {
  const int64_t streams = args.pre.cols;
  const int64_t count = (2 + streams) * streams;
  check_streams(streams, args.x.cols, args.x.cols / streams);
  FATHOM_CHECK(args.fn.rows == count && args.fn.cols == args.x.cols &&
                   static_cast<int64_t>(args.base.size()) == count && args.scale.size() == 3 &&
                   args.post.cols == streams && args.comb.cols == streams * streams &&
                   args.pre.rows == args.x.rows && args.post.rows == args.x.rows &&
                   args.comb.rows == args.x.rows,
               "{} streams: fn [{}, {}], base [{}], scale [{}]", streams, args.fn.rows,
               args.fn.cols, args.base.size(), args.scale.size());
  if (context.isa == Isa::kRef) return ref::hc_mix(args);
  Scratch scratch(context.workspace);
  const MatrixView<double> dots(scratch.take<double>(args.x.rows * (count + 1)), args.x.rows,
                                count + 1);
  mix_dots(context, args, dots);
  float* m = scratch.take<float>(count);
  const auto coefficients = FATHOM_PICK(context.isa, hc_coefficients_row);
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const double mean = dots.row(t)[count] / static_cast<double>(args.x.cols);
    const float variance = static_cast<float>(mean) + args.norm_eps;
    const float inverse = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance)));
    for (int64_t i = 0; i < count; ++i) m[i] = static_cast<float>(dots.row(t)[i]) * inverse;
    coefficients({.m = m,
                  .base = args.base.data(),
                  .scale = args.scale.data(),
                  .streams = streams,
                  .sinkhorn_iterations = args.sinkhorn_iterations,
                  .eps = args.hc_eps,
                  .pre = args.pre.row(t).data(),
                  .post = args.post.row(t).data(),
                  .comb = args.comb.row(t).data()});
  }
}

void hc_collapse(const Context& context, const HcCollapseArgs& args) {
  const int64_t streams = args.pre.cols;
  check_streams(streams, args.x.cols, args.y.cols);
  if (context.isa == Isa::kRef) return ref::hc_collapse(args);
  const auto collapse_row = FATHOM_PICK(context.isa, hc_collapse_row);
  for_row_ranges(context, args.x.rows, args.x.cols, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t)
      collapse_row(args.x.row(t).data(), args.pre.row(t).data(), streams, args.y.row(t).data(),
                   args.y.cols, args.round_bf16);
  });
}

void hc_expand(const Context& context, const HcExpandArgs& args) {
  const int64_t streams = args.post.cols;
  check_streams(streams, args.x.cols, args.y.cols);
  FATHOM_CHECK(args.out.rows == args.x.rows && args.out.cols == args.x.cols,
               "out [{}, {}] of x [{}, {}]", args.out.rows, args.out.cols, args.x.rows,
               args.x.cols);
  if (context.isa == Isa::kRef) return ref::hc_expand(args);
  const auto expand_row = FATHOM_PICK(context.isa, hc_expand_row);
  for_row_ranges(context, args.x.rows, args.x.cols * streams, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t)
      expand_row(args.y.row(t).data(), args.x.row(t).data(), args.post.row(t).data(),
                 args.comb.row(t).data(), streams, args.out.row(t).data(), args.y.cols,
                 args.round_bf16);
  });
}

void hc_mean(const Context& context, const HcMeanArgs& args) {
  const int64_t streams = args.x.cols / args.y.cols;
  check_streams(streams, args.x.cols, args.y.cols);
  if (context.isa == Isa::kRef) return ref::hc_mean(args);
  const auto mean_row = FATHOM_PICK(context.isa, hc_mean_row);
  for_row_ranges(context, args.x.rows, args.x.cols, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t)
      mean_row(args.x.row(t).data(), streams, args.y.row(t).data(), args.y.cols, args.round_bf16);
  });
}

}  // namespace fathom::kernels
