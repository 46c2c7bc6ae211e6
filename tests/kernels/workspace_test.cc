#include "kernels/workspace.h"

#include <gtest/gtest.h>

#include <cstring>

namespace fathom::kernels {
namespace {

TEST(Workspace, HoldsTheLargestStepAndAsksForNoMore) {
  Workspace workspace;
  const auto step = [&](int64_t count) {
    Scratch outer(workspace);
    float* a = outer.take<float>(count);
    std::memset(a, 1, count * sizeof(float));
    Scratch inner(workspace);
    float* b = inner.take<float>(count);
    std::memset(b, 2, count * sizeof(float));
    EXPECT_EQ(reinterpret_cast<const uint8_t*>(a)[0], 1) << "the outer scratch is untouched";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
  };
  step(1'000'000);
  const int64_t held = workspace.bytes_held();
  EXPECT_GE(held, 8'000'000);
  for (int64_t count : {1, 10, 1'000'000, 500'000, 999'999}) step(count);
  EXPECT_EQ(workspace.bytes_held(), held);
}

TEST(Workspace, MemoryComesBackWhenAScratchEnds) {
  Workspace workspace;
  float* first = nullptr;
  {
    Scratch scratch(workspace);
    first = scratch.take<float>(100);
  }
  Scratch scratch(workspace);
  EXPECT_EQ(scratch.take<float>(100), first);
  EXPECT_NE(scratch.take<float>(100), first);
}

}  // namespace
}  // namespace fathom::kernels
