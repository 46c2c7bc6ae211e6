// Any bytes as model.safetensors.index.json. What is accepted names plain files only.
#include "base/check.h"
#include "io/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = fathom::parse_shard_index({reinterpret_cast<const char*>(data), size});
  if (!index) return 0;
  for (const auto& item : index->items)
    FATHOM_CHECK(item.shard >= 0 && static_cast<size_t>(item.shard) < index->shards.size(),
                 "shard {} of {}", item.shard, index->shards.size());
  for (const std::string& name : index->shards)
    FATHOM_CHECK(name.find('/') == name.npos && name != "..", "shard {}", name);
  return 0;
}
