#include "base/status.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

Result<int> half(int n) {
  if (n % 2) return error(Code::kInvalidArgument, "{} is odd", n);
  return n / 2;
}

Status quarter(int n, int* out) {
  FATHOM_ASSIGN(const int h, half(n));
  FATHOM_ASSIGN(*out, half(h));
  return Status::ok();
}

TEST(Status, ErrorsTravelThroughTryAndAssign) {
  int out = 0;
  EXPECT_TRUE(quarter(12, &out).is_ok());
  EXPECT_EQ(out, 3);
  EXPECT_EQ(quarter(6, &out).message(), "3 is odd");
}

TEST(Status, ContextGoesInFrontAndOkStaysOk) {
  EXPECT_EQ(half(3).status().with_context("read a.b").message(), "read a.b: 3 is odd");
  EXPECT_TRUE(Status::ok().with_context("read").is_ok());
}

TEST(StatusDeath, TheValueOfAnErrorIsABug) {
  EXPECT_DEATH((void)half(3).value(), "3 is odd");
}

}  // namespace
}  // namespace fathom
