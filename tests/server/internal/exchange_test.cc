#include "server/internal/exchange.h"

#include <gtest/gtest.h>

#include <memory>

namespace fathom::server::internal {
namespace {

constexpr int64_t kUnsentBytesMax = 1000;

// What on_gone holds may hold the exchange: whichever comes first, the end lets go of it.
TEST(Exchange, TheEndOfAnAnswerLetsGoOfItsCallback) {
  const auto end_stream = [](Exchange& exchange) { exchange.end_stream(); };
  const auto send = [](Exchange& exchange) { exchange.send({}); };
  for (const std::function<void(Exchange&)>& end :
       {std::function<void(Exchange&)>(end_stream), std::function<void(Exchange&)>(send)}) {
    for (const bool is_set_first : {true, false}) {
      const auto exchange = std::make_shared<Exchange>(kUnsentBytesMax, [] {});
      auto held = std::make_shared<std::shared_ptr<Exchange>>(exchange);
      const std::weak_ptr<std::shared_ptr<Exchange>> watched = held;
      if (!is_set_first) end(*exchange);
      exchange->on_gone([held = std::move(held)] {});
      if (is_set_first) end(*exchange);
      EXPECT_TRUE(watched.expired()) << is_set_first;
    }
  }
}

TEST(Exchange, AClientThatLeavesIsToldOnce) {
  Exchange exchange(kUnsentBytesMax, [] {});
  int told = 0;
  exchange.on_gone([&] { ++told; });
  exchange.mark_gone();
  exchange.mark_gone();
  EXPECT_EQ(told, 1);
  exchange.on_gone([&] { ++told; });
  EXPECT_EQ(told, 2) << "too late: at once";
}

}  // namespace
}  // namespace fathom::server::internal
