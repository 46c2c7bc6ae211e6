// Bytes of tokens to text that is valid UTF-8 at every step: characters often span tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace fathom::text {

// Gives out complete characters as soon as they are known and holds at most 3 bytes of an
// unfinished one. Each maximal ill-formed beginning becomes one U+FFFD (WHATWG decoder), at once.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  // The end of the text: an unfinished character becomes one U+FFFD.
  std::string flush();
  bool has_pending() const { return !pending_.empty(); }

 private:
  std::string pending_;  // a well-formed beginning of one character
};

// The whole text at once; the same as push and flush of a Utf8Stream.
std::string to_valid_utf8(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

// Utf8Stream for token ids. Answers go through OutputParser, which uses its own streams.
class StreamDecoder {
 public:
  // `tokenizer` outlives the decoder. skip_special: special tokens give no text.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  std::string push(TokenId id);  // text to send after this id, often empty
  std::string flush() { return stream_.flush(); }

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  Utf8Stream stream_;
};

}  // namespace fathom::text
