// Text to token ids and back, from a checkpoint's tokenizer.json: byte-level BPE with added tokens
// (spec prompt-encoding §2-§4). Prompts are built in chat.h; streams of ids in stream_decoder.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace fathom::text {

namespace internal {
struct TokenizerData;
}

// A stretch of a prompt. Added tokens (<think>, <｜User｜> ...) are matched only in trusted
// stretches, so that text of a request can never become a control token.
struct Segment {
  std::string text;  // UTF-8
  bool is_trusted = false;
};

enum class AddedTokens {
  kIgnore,  // the text is data: every byte goes through BPE
  kMatch,   // the text is trusted: what spells an added token becomes that token
};

struct TokenizerLimits {
  int64_t file_bytes_max = 64 << 20;
  int64_t token_count_max = 1 << 20;
  int64_t added_token_count_max = 1 << 16;
  int64_t token_bytes_max = 4096;
};

// Immutable after load; every method is safe from any thread.
class Tokenizer {
 public:
  // Errors name the file and the token, merge or field (kNotFound, kDataLoss, kUnsupported for a
  // model or pre-tokenizer that Fathom does not know). Nothing is allocated from a number that the
  // file only claims.
  static Result<std::unique_ptr<Tokenizer>> load(const std::string& path,
                                                 const TokenizerLimits& limits = {});
  static Result<std::unique_ptr<Tokenizer>> parse(std::string_view json,
                                                  const TokenizerLimits& limits = {});
  ~Tokenizer();

  // Adds no BOS or EOS. O(n log n). Bytes that are not UTF-8 pass through as bytes. Fails
  // (kInvalidArgument) only for a word-list tokenizer that lacks a byte of the text.
  Result<std::vector<TokenId>> encode(std::string_view text, AddedTokens added) const;

  // One text made of stretches of different trust. Neighbouring text that is no added token is
  // joined across the borders before it is cut into pieces.
  Result<std::vector<TokenId>> encode(std::span<const Segment> segments) const;

  // The text of all ids: bytes joined, then ill-formed bytes replaced by U+FFFD (WHATWG rule).
  // Every id must be below vocab_count().
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;

  // Ids are 0 .. vocab_count()-1, without holes.
  int64_t vocab_count() const;
  bool contains(TokenId id) const { return id >= 0 && id < vocab_count(); }

  // The bytes that the id stands for; may be part of a character. For an added token its content.
  std::string_view token_bytes(TokenId id) const;
  // The id as the file spells it: bytes in GPT-2's printable alphabet (" the" is "Ġthe").
  std::string token_spelling(TokenId id) const;

  bool is_added(TokenId id) const;
  bool is_special(TokenId id) const;  // left out of text shown to people
  std::optional<TokenId> added_token(std::string_view content) const;

  // Hex SHA-256 of the file: the name under which derived tables are cached.
  const std::string& file_sha256() const;

  // For tests and the tokenizer report: byte lengths of the pre-tokenizer's pieces of `text`.
  std::vector<int64_t> piece_lengths(std::string_view text) const;
  // Hex SHA-256 over every merge as "left right\n" in the file's spelling and order.
  std::string merges_sha256() const;

 private:
  explicit Tokenizer(std::unique_ptr<const internal::TokenizerData> data);
  std::unique_ptr<const internal::TokenizerData> data_;
};

}  // namespace fathom::text
