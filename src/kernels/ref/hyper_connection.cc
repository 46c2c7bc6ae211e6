#include "kernels/hyper_connection.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/ref/rounding.h"

namespace fathom::kernels::ref {
namespace {

using Square = std::array<std::array<double, kStreamsMax>, kStreamsMax>;

// Divides each row (or column) by its sum.
void normalise(Square& c, int64_t streams, double eps, bool by_column) {
  for (int64_t a = 0; a < streams; ++a) {
    double sum = eps;
    for (int64_t b = 0; b < streams; ++b) sum += by_column ? c[b][a] : c[a][b];
    for (int64_t b = 0; b < streams; ++b) (by_column ? c[b][a] : c[a][b]) /= sum;
  }
}

void softmax_rows(Square& c, int64_t streams, double eps) {
  for (int64_t j = 0; j < streams; ++j) {
    const double best = *std::max_element(c[j].begin(), c[j].begin() + streams);
    double sum = 0;
    for (int64_t k = 0; k < streams; ++k) sum += c[j][k] = std::exp(c[j][k] - best);
    for (int64_t k = 0; k < streams; ++k) c[j][k] = c[j][k] / sum + eps;
  }
}

// m[i] = (fn row i · x) / rms(x)
double mixed(const HcMixArgs& args, int64_t t, int64_t i) {
  double dot = 0;
  double sum_sq = 0;
  for (int64_t d = 0; d < args.x.cols; ++d) {
    const double x = args.x.row(t)[d];
    dot += args.fn.row(i)[d] * x;
    sum_sq += x * x;
  }
  return dot / std::sqrt(sum_sq / static_cast<double>(args.x.cols) + args.norm_eps);
}

}  // namespace

void hc_mix(const HcMixArgs& args) {
  const int64_t streams = args.pre.cols;
  const auto logit = [&](int64_t t, int64_t i, int part) {
    return mixed(args, t, i) * args.scale[part] + args.base[i];
  };
  for (int64_t t = 0; t < args.x.rows; ++t) {
    for (int64_t s = 0; s < streams; ++s) {
      args.pre.row(t)[s] = static_cast<float>(sigmoid(logit(t, s, 0)) + args.hc_eps);
      args.post.row(t)[s] = static_cast<float>(2 * sigmoid(logit(t, streams + s, 1)));
    }
    Square c = {};
    for (int64_t i = 0; i < streams * streams; ++i)
      c[i / streams][i % streams] = logit(t, 2 * streams + i, 2);
    softmax_rows(c, streams, args.hc_eps);
    normalise(c, streams, args.hc_eps, true);
    for (int iteration = 1; iteration < args.sinkhorn_iterations; ++iteration) {
      normalise(c, streams, args.hc_eps, false);
      normalise(c, streams, args.hc_eps, true);
    }
    for (int64_t i = 0; i < streams * streams; ++i)
      args.comb.row(t)[i] = static_cast<float>(c[i / streams][i % streams]);
  }
}

void hc_collapse(const HcCollapseArgs& args) {
  const int64_t width = args.y.cols;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    for (int64_t d = 0; d < width; ++d) {
      float sum = args.pre.row(t)[0] * args.x.row(t)[d];
      for (int64_t s = 1; s < args.pre.cols; ++s)
        sum += args.pre.row(t)[s] * args.x.row(t)[s * width + d];
      args.y.row(t)[d] = round_if(args.round_bf16, sum);
    }
  }
}

void hc_expand(const HcExpandArgs& args) {
  const int64_t width = args.y.cols;
  const int64_t streams = args.post.cols;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const auto comb = args.comb.row(t);
    for (int64_t d = 0; d < width; ++d) {
      std::array<float, kStreamsMax> x;
      for (int64_t j = 0; j < streams; ++j) x[j] = args.x.row(t)[j * width + d];
      for (int64_t k = 0; k < streams; ++k) {
        float sum = comb[k] * x[0];
        for (int64_t j = 1; j < streams; ++j) sum += comb[j * streams + k] * x[j];
        const float value = args.post.row(t)[k] * args.y.row(t)[d] + sum;
        args.out.row(t)[k * width + d] = round_if(args.round_bf16, value);
      }
    }
  }
}

void hc_mean(const HcMeanArgs& args) {
  const int64_t width = args.y.cols;
  const int64_t streams = args.x.cols / width;
  for (int64_t t = 0; t < args.x.rows; ++t) {
    for (int64_t d = 0; d < width; ++d) {
      float sum = args.x.row(t)[d];
      for (int64_t s = 1; s < streams; ++s) sum += args.x.row(t)[s * width + d];
      args.y.row(t)[d] = round_if(args.round_bf16, sum / static_cast<float>(streams));
    }
  }
}

}  // namespace fathom::kernels::ref
