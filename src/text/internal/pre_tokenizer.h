// Cuts text into the pieces that BPE works on. The patterns of tokenizer.json are matched by hand
// (spec prompt-encoding §3): regex engines are slow on long runs and differ in their classes.
#pragma once

#include <string_view>
#include <vector>

namespace fathom::text::internal {

enum class PreTokenizer {
  kDeepSeek,  // digits in threes; Chinese and kana; words, punctuation, white space
  kGpt2,      // ByteLevel with its own pattern
  kWords,     // "w12" and " W12": the word lists of the golden checkpoints
  kWhole,     // no cut
};

// The pieces in order; joined they are `text`. Bytes that are not UTF-8 belong to no class.
std::vector<std::string_view> split_pieces(PreTokenizer kind, std::string_view text);

}  // namespace fathom::text::internal
