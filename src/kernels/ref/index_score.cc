#include "kernels/index_score.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/ref/rows_access.h"

namespace fathom::kernels::ref {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Positions of the `count` largest values, ties to the lower position, -inf left out.
std::vector<int64_t> best_positions(const std::vector<float>& values, int64_t count) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return values[a] > values[b]; });
  if (static_cast<int64_t>(order.size()) > count) order.resize(count);
  std::erase_if(order, [&](int64_t i) { return values[i] == kNever; });
  return order;
}

}  // namespace

void index_score(const IndexScoreArgs& args) {
  const int64_t dim = args.keys.cols;
  for (int64_t t = 0; t < args.q.rows; ++t) {
    for (int64_t j = 0; j < args.score.cols; ++j) {
      if (j >= args.visible[t]) {
        args.score.row(t)[j] = kNever;
        continue;
      }
      float score = 0;
      for (int64_t h = 0; h < args.weight.cols; ++h) {
        double dot = 0;
        for (int64_t d = 0; d < dim; ++d) {
          dot += static_cast<double>(args.q.row(t)[h * dim + d]) * element(args.keys, j, d);
        }
        score += args.weight.row(t)[h] * args.kappa * std::max(static_cast<float>(dot), 0.0f);
      }
      args.score.row(t)[j] = score;
    }
  }
}

void candidate_blocks(const CandidateBlocksArgs& args) {
  for (int64_t t = 0; t < args.score.rows; ++t) {
    std::vector<float> best(args.keep.cols, kNever);
    for (int64_t j = 0; j < args.visible[t]; ++j)
      best[j / args.block_size] = std::max(best[j / args.block_size], args.score.row(t)[j]);
    if (args.visible[t] > 0) {
      best[(args.visible[t] - 1) / args.block_size] = std::numeric_limits<float>::infinity();
    }
    std::ranges::fill(args.keep.row(t), 0);
    for (int64_t block : best_positions(best, args.blocks_max)) args.keep.row(t)[block] = 1;
  }
}

void select_top(const SelectTopArgs& args) {
  for (int64_t t = 0; t < args.score.rows; ++t) {
    const auto row = args.score.row(t).first(args.visible[t]);
    std::vector<float> score(row.begin(), row.end());
    for (size_t j = 0; args.candidates.data && j < score.size(); ++j)
      if (!args.candidates.row(t)[j / args.block_size]) score[j] = kNever;
    std::vector<int64_t> chosen = best_positions(score, args.index.cols);
    std::sort(chosen.begin(), chosen.end());
    std::ranges::fill(args.index.row(t), -1);
    std::copy(chosen.begin(), chosen.end(), args.index.row(t).begin());
  }
}

}  // namespace fathom::kernels::ref
