// A tokenizer.json small enough to be changed by hand: all bytes, nine merges, two added tokens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/internal/byte_alphabet.h"

namespace fathom::text {

enum class MergeSpelling { kText, kPairs };

inline Json tiny_tokenizer_json(MergeSpelling spelling = MergeSpelling::kText) {
  Json vocab = Json::object(), merges = Json::array();
  for (int byte = 0; byte < 256; ++byte)
    vocab[internal::spell_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"h", "e"}, {"l", "l"},   {"he", "ll"}, {"hell", "o"},  {"Ġ", "w"},
      {"o", "r"}, {"Ġw", "or"}, {"l", "d"},   {"Ġwor", "ld"},
  };
  for (const auto& [left, right] : pairs) {
    const int next = static_cast<int>(vocab.size());
    vocab[left + right] = next;
    merges.push_back(spelling == MergeSpelling::kText ? Json(left + " " + right)
                                                      : Json::array({left, right}));
  }
  const int next = static_cast<int>(vocab.size());
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {{{"id", next}, {"content", "<think>"}, {"special", false}, {"normalized", false}},
        {{"id", next + 1}, {"content", "<end>"}, {"special", true}, {"normalized", false}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

}  // namespace fathom::text
