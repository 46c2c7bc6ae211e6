#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/rounding.h"
#include "kernels/ref/rows_access.h"

namespace fathom::kernels::ref {
namespace {

// The rows that query t attends, widened, in list order: [entries][Hd].
std::vector<std::vector<float>> listed_rows(const AttentionArgs& args, int64_t t) {
  std::vector<std::vector<float>> rows;
  const auto append = [&](const RowsView& view, int64_t row) {
    auto& copy = rows.emplace_back(args.head_dim);
    for (int64_t d = 0; d < args.head_dim; ++d) copy[d] = element(view, row, d);
  };
  const RowRange range = args.window_range[t];
  for (int64_t i = 0; i < range.count; ++i) append(args.window, range.first + i);
  if (!args.selected_index.data) return rows;
  for (int32_t row : args.selected_index.row(t)) {
    if (row < 0) break;
    append(args.selected, row);
  }
  return rows;
}

void attend(const AttentionArgs& args, const std::vector<std::vector<float>>& rows, int64_t t,
            int64_t head) {
  const auto q = args.q.row(t).subspan(head * args.head_dim, args.head_dim);
  const auto y = args.y.row(t).subspan(head * args.head_dim, args.head_dim);
  std::vector<double> p;
  double best = -1e30;
  for (const auto& row : rows) {
    double dot = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) dot += static_cast<double>(q[d]) * row[d];
    p.push_back(dot * args.scale);
    best = std::max(best, p.back());
  }
  double sum = rows.empty() ? 1 : std::exp(args.sink[head] - best);
  for (double& value : p) sum += value = std::exp(value - best);
  for (int64_t d = 0; d < args.head_dim; ++d) {
    double weighted = 0;
    for (size_t e = 0; e < rows.size(); ++e) weighted += p[e] * rows[e][d];
    y[d] = round_if(args.round_bf16, weighted / sum);
  }
}

}  // namespace

void attention(const AttentionArgs& args) {
  for (int64_t t = 0; t < args.q.rows; ++t) {
    const auto rows = listed_rows(args, t);
    for (int64_t head = 0; head < args.q.cols / args.head_dim; ++head) attend(args, rows, t, head);
  }
}

}  // namespace fathom::kernels::ref
