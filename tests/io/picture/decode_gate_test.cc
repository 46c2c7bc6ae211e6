#include "io/picture/decode_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace fathom {
namespace {

using Clock = std::chrono::steady_clock;

TEST(DecodeGate, RefusesWhenFullAndAdmitsAfterSomeoneLeft) {
  DecodeGate gate(2, 100);
  auto first = gate.enter(10, Clock::now());
  std::optional<Result<DecodeGate::Pass>> second(gate.enter(10, Clock::now()));
  ASSERT_TRUE(first.is_ok() && second->is_ok());
  EXPECT_EQ(gate.enter(10, Clock::now()).status().code(), Code::kUnavailable) << "try again";
  second.reset();
  EXPECT_TRUE(gate.enter(10, Clock::now()).is_ok());
}

TEST(DecodeGate, CountsMemoryTogether) {
  DecodeGate gate(9, 100);
  const auto first = gate.enter(60, Clock::now());
  EXPECT_FALSE(gate.enter(41, Clock::now()).is_ok());
  EXPECT_TRUE(gate.enter(40, Clock::now()).is_ok());
  const auto never = gate.enter(101, Clock::now() + std::chrono::hours(1));
  EXPECT_EQ(never.status().code(), Code::kResourceExhausted) << "trying again would not help";
}

TEST(DecodeGate, ManyThreadsNeverExceedTheCount) {
  DecodeGate gate(3, 100);
  std::atomic<int> inside = 0;
  std::atomic<int> worst = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        const auto pass = gate.enter(30, Clock::now() + std::chrono::hours(1));
        ASSERT_TRUE(pass.is_ok());
        const int now = ++inside;
        for (int seen = worst; now > seen && !worst.compare_exchange_weak(seen, now);) {
        }
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(worst, 3);
  EXPECT_GE(worst, 1);
}

}  // namespace
}  // namespace fathom
