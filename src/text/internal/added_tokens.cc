#include "text/internal/added_tokens.h"

namespace fathom::text::internal {

namespace {

uint64_t edge(uint32_t node, char byte) {
  return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

void AddedTokenTrie::insert(std::string_view content, TokenId id) {
  uint32_t node = 0;
  for (const char byte : content) {
    const auto [child, is_new] =
        children_.try_emplace(edge(node, byte), static_cast<uint32_t>(id_of_.size()));
    if (is_new) id_of_.push_back(-1);
    node = child->second;
  }
  id_of_[node] = id;
}

std::optional<AddedTokenTrie::Match> AddedTokenTrie::find(std::string_view text,
                                                          size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    Match match;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto child = children_.find(edge(node, text[at]));
      if (child == children_.end()) break;
      node = child->second;
      if (id_of_[node] >= 0) match = {begin, at + 1, id_of_[node]};
    }
    if (match.id >= 0) return match;
  }
  return std::nullopt;
}

}  // namespace fathom::text::internal
