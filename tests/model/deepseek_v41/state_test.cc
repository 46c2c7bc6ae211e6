#include "model/deepseek_v41/state.h"

#include <gtest/gtest.h>

namespace fathom::v41 {
namespace {

TEST(GroupTail, HoldsTheNewestRowsAndDropsFromTheEnd) {
  GroupTail tail;
  tail.reserve(/*cols=*/2, /*rows_max=*/4);
  const std::vector<float> rows = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
  tail.append({rows.data(), 3, 2});
  EXPECT_EQ(tail.newest(3).row(0)[0], 0);
  tail.append({rows.data() + 6, 3, 2});
  EXPECT_EQ(tail.newest(4).row(0)[0], 2) << "four of six are held";
  tail.drop_newest(3);
  EXPECT_EQ(tail.newest(1).row(0)[1], 2);
  EXPECT_EQ(tail.newest(0).rows, 0);
}

TEST(GroupTail, AStepLongerThanItLeavesItsEnd) {
  GroupTail tail;
  tail.reserve(1, 2);
  const std::vector<float> rows = {0, 1, 2, 3, 4};
  tail.append({rows.data(), 5, 1});
  EXPECT_EQ(tail.newest(2).row(0)[0], 3);
  EXPECT_EQ(tail.newest(2).row(1)[0], 4);
}

}  // namespace
}  // namespace fathom::v41
