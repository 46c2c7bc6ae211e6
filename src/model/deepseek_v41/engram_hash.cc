#include "model/deepseek_v41/engram_hash.h"

namespace fathom::v41 {

void hash_position(const EngramHashing& hashing, std::span<const int32_t> ids,
                   std::span<int64_t> rows) {
  bool is_blocked = false;  // once the sequence starts or a picture stands in between
  int64_t hash = 0;
  int64_t offset = 0;
  size_t column = 0;
  for (size_t back = 0; back < hashing.multipliers.size(); ++back) {
    is_blocked = is_blocked || back >= ids.size() || ids[ids.size() - 1 - back] == kDeadId;
    const int64_t id = is_blocked ? hashing.pad_id : ids[ids.size() - 1 - back];
    hash ^= id * hashing.multipliers[back];
    for (int64_t head = 0; back > 0 && head < hashing.heads; ++head, ++column) {
      rows[column] = hash % hashing.primes[column] + offset;
      offset += hashing.primes[column];
    }
  }
}

}  // namespace fathom::v41
