#include "kernels/policy.h"

#include <gmock/gmock.h>

namespace fathom::kernels {
namespace {

TEST(Policy, EachNameFindsItsRoundings) {
  const Policy reference = find_policy("reference").value();
  EXPECT_TRUE(reference.round_bf16 && reference.quantise_activations && reference.quantise_caches);
  const Policy f32 = find_policy("f32").value();
  EXPECT_TRUE(!f32.round_bf16 && f32.quantise_activations && f32.quantise_caches);
  const Policy smooth = find_policy("smooth").value();
  EXPECT_TRUE(!smooth.round_bf16 && !smooth.quantise_activations && !smooth.quantise_caches);
}

TEST(Policy, AnUnknownNameListsTheKnown) {
  const Status status = find_policy("exact").status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("reference, f32, smooth"));
}

}  // namespace
}  // namespace fathom::kernels
