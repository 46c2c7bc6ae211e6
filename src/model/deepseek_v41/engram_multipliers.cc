#include "model/deepseek_v41/engram_multipliers.h"

#include <array>

#include "base/check.h"

namespace fathom::v41 {
namespace {

using Uint128 = unsigned __int128;

// NumPy's SeedSequence with a pool of four words and a seed of one word.
class SeedSequence {
 public:
  explicit SeedSequence(uint32_t seed) {
    uint32_t constant = 0x43b0d7e5;
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(i == 0 ? seed : 0, &constant);
    for (size_t from = 0; from < pool_.size(); ++from)
      for (size_t to = 0; to < pool_.size(); ++to)
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from], &constant));
  }

  std::array<uint64_t, 4> state() const {
    std::array<uint64_t, 4> out{};
    uint32_t constant = 0x8b51f9dd;
    for (size_t i = 0; i < 8; ++i) {
      uint32_t word = pool_[i % 4] ^ constant;
      constant *= 0x58f38ded;
      word *= constant;
      word ^= word >> 16;
      out[i / 2] |= static_cast<uint64_t>(word) << (32 * (i % 2));
    }
    return out;
  }

 private:
  static uint32_t hash(uint32_t value, uint32_t* constant) {
    value ^= *constant;
    *constant *= 0x931e8875;
    value *= *constant;
    return value ^ (value >> 16);
  }
  static uint32_t mix(uint32_t x, uint32_t y) {
    const uint32_t mixed = 0xca01f9ddU * x - 0x4973f715U * y;
    return mixed ^ (mixed >> 16);
  }
  std::array<uint32_t, 4> pool_{};
};

class Pcg64 {
 public:
  explicit Pcg64(uint32_t seed) {
    const std::array<uint64_t, 4> words = SeedSequence(seed).state();
    increment_ = (((Uint128{words[2]} << 64) | words[3]) << 1) | 1;
    step();
    state_ += (Uint128{words[0]} << 64) | words[1];
    step();
  }

  uint64_t next() {
    step();
    const auto folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    const auto turn = static_cast<unsigned>(state_ >> 122);
    return (folded >> turn) | (folded << ((64 - turn) & 63));
  }

 private:
  void step() {
    constexpr Uint128 kMultiplier =
        (Uint128{2549297995355413924ULL} << 64) | 4865540595714422341ULL;
    state_ = state_ * kMultiplier + increment_;
  }
  Uint128 state_ = 0;
  Uint128 increment_ = 0;
};

}  // namespace

std::vector<int64_t> numpy_integers(uint32_t seed, uint64_t bound, int64_t count) {
  FATHOM_CHECK(bound > (uint64_t{1} << 32), "bound {}: NumPy draws small bounds in another way",
               bound);
  Pcg64 generator(seed);
  const uint64_t threshold = (0 - bound) % bound;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) {
    Uint128 product = Uint128{generator.next()} * bound;
    while (static_cast<uint64_t>(product) < threshold) product = Uint128{generator.next()} * bound;
    out.push_back(static_cast<int64_t>(product >> 64));
  }
  return out;
}

std::vector<int64_t> engram_multipliers(int32_t layer_id, int64_t ngram_max,
                                        int64_t compressed_vocab) {
  constexpr uint64_t kIdMax = (uint64_t{1} << 63) - 1;
  const uint64_t bound = kIdMax / static_cast<uint64_t>(compressed_vocab) / 2;
  const auto seed = static_cast<uint32_t>(10007 * int64_t{layer_id});
  std::vector<int64_t> multipliers = numpy_integers(seed, bound, ngram_max);
  for (int64_t& multiplier : multipliers) multiplier = multiplier * 2 + 1;
  return multipliers;
}

}  // namespace fathom::v41
