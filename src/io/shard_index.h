// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fathom {

struct ShardIndex {
  struct Item {
    std::string tensor;
    int32_t shard = 0;  // into shards
  };
  std::vector<std::string> shards;    // plain file names, sorted
  std::vector<Item> items;            // sorted by tensor name
  std::optional<int64_t> total_size;  // payload bytes as the index claims them
};

inline constexpr int64_t kShardIndexBytesMax = 64 << 20;

// `text` is the file's content. Errors (kDataLoss) name the entry; the caller adds the file's name.
// A shard must be a plain name in the same folder: a path that climbs out is refused.
Result<ShardIndex> parse_shard_index(std::string_view text);

}  // namespace fathom
