#include "io/shard_index.h"

#include <algorithm>
#include <map>

#include "base/json.h"

namespace fathom {

namespace {

constexpr int64_t kIndexValuesMax = 1'000'000;  // five times the released index

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text) {
  const Result<Json> root = parse_json(
      text, {.bytes_max = kShardIndexBytesMax, .depth_max = 8, .values_max = kIndexValuesMax});
  if (!root) return error(Code::kDataLoss, "{}", root.status().message());
  const auto map = root->is_object() ? root->find("weight_map") : root->end();
  if (map == root->end() || !map->is_object())
    return error(Code::kDataLoss, "wanted an object weight_map, found none");

  ShardIndex index;
  std::map<std::string, int32_t> shard_ids;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>()))
      return error(Code::kDataLoss,
                   "weight_map \"{}\": wanted the name of a file in this folder, found {}",
                   tensor.substr(0, 120), shard.dump().substr(0, 120));
    shard_ids.emplace(shard.get_ref<const std::string&>(), 0);
  }
  for (auto& [name, id] : shard_ids) {
    id = static_cast<int32_t>(index.shards.size());
    index.shards.push_back(name);
  }
  for (const auto& [tensor, shard] : map->items())  // an ordered map: sorted by tensor
    index.items.push_back({tensor, shard_ids.at(shard.get_ref<const std::string&>())});

  const auto metadata = root->find("metadata");
  if (metadata != root->end() && metadata->is_object()) {
    const auto total = metadata->find("total_size");
    if (total != metadata->end() && total->is_number_unsigned())
      index.total_size = static_cast<int64_t>(total->get<uint64_t>() & INT64_MAX);
  }
  return index;
}

}  // namespace fathom
