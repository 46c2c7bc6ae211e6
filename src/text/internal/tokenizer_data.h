// What a tokenizer.json says, checked and indexed.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/status.h"
#include "text/internal/added_tokens.h"
#include "text/internal/bpe.h"
#include "text/internal/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace fathom::text::internal {

struct TokenInfo {
  std::string
      bytes;  // of a vocabulary entry: spelled bytes decoded; of an added token: its content
  bool is_added = false;
  bool is_special = false;
};

struct TokenizerData {
  std::vector<TokenInfo> tokens;                             // [vocab_count]
  std::array<TokenId, 256> id_of_byte{};                     // -1: no entry is this one byte
  std::unordered_map<std::string_view, TokenId> id_of_word;  // by bytes; only with ignore_merges
  MergeTable merges;
  // Each merge's operands in the order of the file.
  std::vector<std::pair<TokenId, TokenId>> merge_list;
  bool ignore_merges = false;  // a piece that is an entry is taken as it is
  PreTokenizer pre_tokenizer = PreTokenizer::kWhole;
  // As in the reference: tokens that are not "normalized" are matched first, the others in between.
  std::array<AddedTokenTrie, 2> added;  // [0] not normalized, [1] normalized
  std::unordered_map<std::string, TokenId> id_of_added;
  std::string file_sha256;
};

// Errors name the token, merge or field.
Result<std::unique_ptr<TokenizerData>> parse_tokenizer_file(std::string_view json,
                                                            const TokenizerLimits& limits);

// The file's pre_tokenizer object; kUnsupported for patterns that Fathom does not know.
Result<PreTokenizer> read_pre_tokenizer(const Json& value);

}  // namespace fathom::text::internal
