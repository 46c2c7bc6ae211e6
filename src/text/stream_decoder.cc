#include "text/stream_decoder.h"

#include "text/internal/unicode_classes.h"

namespace fathom::text {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Appends the characters of `bytes` to `text` and returns how many bytes that took; what is left is
// the beginning of one character.
size_t append_characters(std::string_view bytes, std::string* text) {
  size_t at = 0;
  while (at < bytes.size()) {
    const int length = internal::character_length(bytes.substr(at));
    if (length == 0) break;
    if (length > 0)
      text->append(bytes.substr(at, length));
    else
      text->append(kReplacement);
    at += length > 0 ? length : -length;
  }
  return at;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  std::string text;
  pending_.append(bytes);
  pending_.erase(0, append_characters(pending_, &text));
  return text;
}

std::string Utf8Stream::flush() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacement);
}

std::string to_valid_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.push(bytes);
  return text + stream.flush();
}

bool is_valid_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const int length = internal::character_length(bytes.substr(at));
    if (length <= 0) return false;
    at += length;
  }
  return true;
}

std::string StreamDecoder::push(TokenId id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  return stream_.push(tokenizer_->token_bytes(id));
}

}  // namespace fathom::text
