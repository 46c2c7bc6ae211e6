// Which table rows the last tokens name (spec §5.3). Integers only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fathom::v41 {

// The compressed id of a position that no n-gram may cross: one of a picture's span.
inline constexpr int32_t kDeadId = -1;

// What one Engram layer hashes with.
struct EngramHashing {
  int64_t heads = 0;                 // buckets an n-gram order
  int32_t pad_id = 0;                // compressed id that stands for a missing token
  std::vector<int64_t> primes;       // [orders · heads] bucket sizes, 2-grams first
  std::vector<int64_t> multipliers;  // [orders + 1]
};

// Rows of the position whose compressed id is the last of `ids`; the ones before it come before, at
// the start of a sequence fewer than the longest n-gram has. rows [orders · heads], offsets added.
void hash_position(const EngramHashing& hashing, std::span<const int32_t> ids,
                   std::span<int64_t> rows);

}  // namespace fathom::v41
