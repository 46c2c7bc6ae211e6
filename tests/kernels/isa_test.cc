#include "kernels/isa.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace fathom::kernels {
namespace {

using ::testing::HasSubstr;

TEST(ChooseIsa, TakesTheBestUnlessForced) {
  EXPECT_EQ(choose_isa("").value(), available_isas().back());
  for (Isa isa : available_isas()) EXPECT_EQ(choose_isa(isa_name(isa)).value(), isa);
}

TEST(ChooseIsa, AnUnknownNameIsAnErrorThatListsTheKnown) {
  const Status status = choose_isa("avx9").status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("avx9"));
  EXPECT_THAT(status.message(), HasSubstr("portable"));
}

TEST(ChooseIsa, WhatThisCpuLacksIsUnsupported) {
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (std::ranges::count(available_isas(), isa) > 0) continue;
    EXPECT_EQ(choose_isa(isa_name(isa)).status().code(), Code::kUnsupported);
  }
}

TEST(AvailableIsas, AlwaysHoldRefAndPortable) {
  EXPECT_EQ(std::ranges::count(available_isas(), Isa::kRef), 1);
  EXPECT_EQ(std::ranges::count(available_isas(), Isa::kPortable), 1);
}

}  // namespace
}  // namespace fathom::kernels
