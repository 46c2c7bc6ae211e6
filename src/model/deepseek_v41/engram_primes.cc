// The bucket sizes of the Engram hash (spec §5.2): ascending primes, none used twice in a model.
#include <set>

#include "model/deepseek_v41/config.h"

namespace fathom::v41 {

namespace {

// Trial division: at most 23,000 steps for the largest vocabulary the config may name (2^31).
bool is_prime(int64_t n) {
  if (n < 2 || (n > 2 && n % 2 == 0)) return false;
  for (int64_t d = 3; d * d <= n; d += 2)
    if (n % d == 0) return false;
  return true;
}

}  // namespace

EngramPrimes engram_primes(const TextConfig& text) {
  EngramPrimes layers;
  std::set<int64_t> used;
  for (size_t layer = 0; layer < text.engram_layer_ids.size(); ++layer) {
    auto& orders = layers.emplace_back();
    for (int64_t order = 2; order <= text.engram_max_ngram_size; ++order) {
      int64_t candidate = text.engram_vocab_size - 1;
      auto& heads = orders.emplace_back();
      for (int64_t head = 0; head < text.engram_n_heads; ++head) {
        do ++candidate;
        while (used.contains(candidate) || !is_prime(candidate));
        used.insert(candidate);
        heads.push_back(candidate);
      }
    }
  }
  return layers;
}

}  // namespace fathom::v41
