// Finds added tokens in trusted text: leftmost, then longest.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace fathom::text::internal {

// A trie over bytes. Cost of a search: text length x longest token, whatever the number of tokens.
class AddedTokenTrie {
 public:
  void insert(std::string_view content, TokenId id);  // content is not empty

  struct Match {
    size_t begin = 0;
    size_t end = 0;
    TokenId id = -1;
  };
  // The first match at or behind `from`.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  std::unordered_map<uint64_t, uint32_t> children_;  // node << 8 | byte -> node
  std::vector<TokenId> id_of_ = {-1};                // node 0 is the root; -1: no token ends here
};

}  // namespace fathom::text::internal
