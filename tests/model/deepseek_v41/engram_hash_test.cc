#include "model/deepseek_v41/engram_hash.h"

#include <gtest/gtest.h>

#include <array>

#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/engram_multipliers.h"

namespace fathom::v41 {
namespace {

// The released tables; pad 7, ids (11, 22, 33, 44, DEAD, 55) as in spec §5.3.
class EngramHash : public ::testing::Test {
 protected:
  EngramHash() {
    TextConfig text;
    text.engram_layer_ids = {1, 14};
    const EngramPrimes primes = engram_primes(text);
    for (size_t i = 0; i < 2; ++i) {
      layers_[i].heads = 8;
      layers_[i].pad_id = 7;
      for (const auto& order : primes[i])
        layers_[i].primes.insert(layers_[i].primes.end(), order.begin(), order.end());
      layers_[i].multipliers = engram_multipliers(text.engram_layer_ids[i], 4, 99092);
    }
  }

  std::array<int64_t, 24> rows(size_t layer, size_t position) const {
    std::array<int64_t, 24> out{};
    hash_position(layers_[layer], std::span(ids_).first(position + 1), out);
    return out;
  }

  const std::vector<int32_t> ids_ = {11, 22, 33, 44, kDeadId, 55};
  std::array<EngramHashing, 2> layers_;
};

TEST_F(EngramHash, PadsBeforeTheStart) {
  EXPECT_EQ(rows(0, 0)[0], 3507628);
  EXPECT_EQ(rows(0, 0)[1], 26094887);
  EXPECT_EQ(rows(0, 0)[2], 36875744);
  EXPECT_EQ(rows(0, 0)[23], 379812459);
}

TEST_F(EngramHash, HashesEveryOrderAndHead) {
  EXPECT_EQ(rows(0, 3)[0], 3057966);
  EXPECT_EQ(rows(0, 3)[8], 140321507);
  EXPECT_EQ(rows(0, 3)[16], 264034123);
  EXPECT_EQ(rows(0, 3)[23], 377270028);
  EXPECT_EQ(rows(1, 3)[0], 8916476);
  EXPECT_EQ(rows(1, 3)[8], 133602641);
  EXPECT_EQ(rows(1, 3)[16], 260712270);
  EXPECT_EQ(rows(1, 3)[23], 373295295);
}

TEST_F(EngramHash, NoNgramCrossesADeadPosition) {
  EXPECT_EQ(rows(0, 4)[0], 12468576);
  EXPECT_EQ(rows(1, 5)[0], 633816);
}

}  // namespace
}  // namespace fathom::v41
