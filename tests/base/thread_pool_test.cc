#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace fathom {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceForAnyThreadCount) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 100, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      pool.parallel_for(count, [&](int64_t index, int) { ++hits[static_cast<size_t>(index)]; });
      for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(ThreadPool, ThreadNumbersAreDistinctAmongCallsThatOverlap) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> inside(3);
  pool.parallel_for(5000, [&](int64_t, int thread) {
    ASSERT_GE(thread, 0);
    ASSERT_LT(thread, 3);
    EXPECT_EQ(++inside[static_cast<size_t>(thread)], 1);
    --inside[static_cast<size_t>(thread)];
  });
}

TEST(ThreadPool, ManySmallJobsInARowAllFinish) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  for (int job = 0; job < 20000; ++job) pool.parallel_for(2, [&](int64_t i, int) { sum += i + 1; });
  EXPECT_EQ(sum, 60000);
}

}  // namespace
}  // namespace fathom
