#include "model/blocks/cache_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom {
namespace {

constexpr int64_t kCols = 4;

// Rows whose every number is their position.
std::vector<float> rows_from(int64_t first, int64_t count) {
  std::vector<float> rows;
  for (int64_t p = first; p < first + count; ++p)
    rows.insert(rows.end(), kCols, static_cast<float>(p));
  return rows;
}

float at(const WindowRows& window, int64_t position) {
  std::vector<float> row(kCols);
  window.read(position, row);
  return row[kCols - 1];
}

void append(WindowRows* window, int64_t first, int64_t count) {
  const std::vector<float> rows = rows_from(first, count);
  window->append(first, {rows.data(), count, kCols});
}

TEST(CacheRows, TruncateKeepsTheOldestAndAppendGoesOn) {
  for (const bool is_bf16 : {false, true}) {
    CacheRows cache = CacheRows::create(kCols, is_bf16, 6).value();
    const std::vector<float> rows = rows_from(0, 6);
    cache.append({rows.data(), 6, kCols});
    cache.truncate(2);
    EXPECT_EQ(cache.count(), 2);
    const std::vector<float> other = rows_from(40, 3);
    cache.append({other.data(), 3, kCols});
    std::vector<float> row(kCols);
    cache.read(1, row);
    EXPECT_EQ(row[0], 1);
    cache.read(2, row);
    EXPECT_EQ(row[0], 40);
  }
}

// Steps of every size behind every length, cut back to every count: the next query finds its rows.
TEST(WindowRows, TruncateLeavesWhatTheStepsFirstPositionLooksBackOn) {
  constexpr int64_t kWindow = 5;
  constexpr int64_t kStepMax = 4;
  for (int64_t held = 1; held < 30; ++held) {
    for (int64_t step = 1; step <= kStepMax; ++step) {
      for (int64_t kept = 0; kept <= step; ++kept) {
        WindowRows window = WindowRows::create(kCols, true, kWindow, kStepMax).value();
        for (int64_t p = 0; p < held; ++p) append(&window, p, 1);
        append(&window, held, step);
        window.truncate(held + kept);
        EXPECT_EQ(window.end_position(), held + kept);
        append(&window, held + kept, 1);
        const kernels::RowRange range = window.range(held + kept);
        EXPECT_EQ(range.count, std::min(kWindow, held + kept + 1));
        for (int64_t i = 0; i < range.count; ++i)
          EXPECT_EQ(at(window, held + kept - i), held + kept - i);
      }
    }
  }
}

TEST(WindowRows, TruncateBehindTheEndDoesNothing) {
  WindowRows window = WindowRows::create(kCols, false, 3, 2).value();
  append(&window, 0, 2);
  window.truncate(7);
  EXPECT_EQ(window.end_position(), 2);
}

TEST(WindowRows, WriteReplacesARowInItsPlace) {
  WindowRows window = WindowRows::create(kCols, true, 3, 2).value();
  append(&window, 0, 2);
  window.write(1, std::vector<float>(kCols, 9));
  EXPECT_EQ(at(window, 1), 9);
  EXPECT_EQ(at(window, 0), 0);
}

}  // namespace
}  // namespace fathom
