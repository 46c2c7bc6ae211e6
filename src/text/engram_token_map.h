// The Engram tables hash "compressed" token ids, under which spellings of one word fall together
// (spec deepseek-v4.1 §5.1). The map is not in the checkpoint: it is computed from the tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace fathom::text {

struct EngramTokenMap {
  std::vector<int32_t> compressed_of;  // [vocab_count] token id -> compressed id
  int64_t distinct_count = 0;          // compressed ids are 0 .. distinct_count-1
};

// Compressed ids are handed out in the order of first use.
EngramTokenMap build_engram_token_map(const Tokenizer& tokenizer);

// From `cache_dir`/engram-<hash of the tokenizer file>.map when it is there and intact, else built
// and, if it can be, written there. An empty cache_dir: no cache. kDataLoss when the map does not
// have `distinct_expected` ids (config: engram compressed vocabulary; hash multipliers depend on
// it).
Result<EngramTokenMap> load_engram_token_map(const Tokenizer& tokenizer,
                                             const std::string& cache_dir,
                                             int64_t distinct_expected);

}  // namespace fathom::text
