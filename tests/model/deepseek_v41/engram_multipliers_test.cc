#include "model/deepseek_v41/engram_multipliers.h"

#include <gtest/gtest.h>

namespace fathom::v41 {
namespace {

// Spec §5.2 prints those of the released model.
TEST(EngramMultipliers, AreTheOnesThatNumpyDraws) {
  EXPECT_EQ(engram_multipliers(1, 4, 99092),
            (std::vector<int64_t>{76632096046245, 4839876093313, 35959672319349, 73987337458391}));
  EXPECT_EQ(engram_multipliers(14, 4, 99092),
            (std::vector<int64_t>{67716810739261, 51510806800915, 30921347202721, 82619226485591}));
}

}  // namespace
}  // namespace fathom::v41
