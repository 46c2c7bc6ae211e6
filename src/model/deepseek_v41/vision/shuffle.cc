#include "model/deepseek_v41/vision/shuffle.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/rope.h"

namespace fathom::v41 {
namespace {

// Rotary table [count, 2 · frequencies] of positions 0 .. count - 1.
std::vector<float> table_of_range(int64_t count, std::span<const float> frequencies) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  const auto columns = static_cast<int64_t>(2 * frequencies.size());
  std::vector<float> table(static_cast<size_t>(count * columns));
  kernels::rope_table(positions, frequencies, {table.data(), count, columns});
  return table;
}

}  // namespace

void make_vision_rope_table(const ResizePlan& plan, double theta, MatrixView<float> table) {
  const int64_t quarter = table.cols / 4;
  const std::vector<float> frequencies =
      kernels::rope_frequencies(table.cols / 2, theta, std::nullopt);
  const std::vector<float> rows = table_of_range(plan.patch_rows, frequencies);
  const std::vector<float> columns = table_of_range(plan.patch_columns, frequencies);
  for (int64_t patch = 0; patch < plan.patch_count(); ++patch) {
    const float* of_row = &rows[static_cast<size_t>(patch / plan.patch_columns * 2 * quarter)];
    const float* of_column =
        &columns[static_cast<size_t>(patch % plan.patch_columns * 2 * quarter)];
    float* to = table.row(patch).data();
    to = std::copy_n(of_row, quarter, to);
    to = std::copy_n(of_column, quarter, to);
    to = std::copy_n(of_row + quarter, quarter, to);
    std::copy_n(of_column + quarter, quarter, to);
  }
}

void shuffle_patches(MatrixView<const float> patches, const ResizePlan& plan, int64_t ratio,
                     MatrixView<float> cells) {
  const int64_t area = ratio * ratio;
  for (int64_t token = 0; token < plan.image_token_count(); ++token) {
    const std::span<float> cell = cells.row(token);
    std::fill(cell.begin(), cell.end(), 0.0F);
    const int64_t top = token / plan.token_columns * ratio;
    const int64_t left = token % plan.token_columns * ratio;
    for (int64_t k = 0; k < area; ++k) {
      const int64_t row = top + k / ratio;
      const int64_t column = left + k % ratio;
      if (row >= plan.patch_rows || column >= plan.patch_columns) continue;
      const std::span<const float> patch = patches.row(row * plan.patch_columns + column);
      for (size_t c = 0; c < patch.size(); ++c)
        cell[c * static_cast<size_t>(area) + static_cast<size_t>(k)] = patch[c];
    }
  }
}

}  // namespace fathom::v41
