#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(DType, NamesGoBothWaysAndUnknownOnesAreAbsent) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    EXPECT_GT(dtype_bytes(dtype), 0);
  }
  EXPECT_FALSE(dtype_from_name("F4").has_value());
}

}  // namespace
}  // namespace fathom
