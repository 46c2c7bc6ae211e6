// The few classes of code points that the pre-tokenizer's patterns name, exactly as the reference's
// regex engine has them, and a UTF-8 reader that never fails.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fathom::text::internal {

// General categories L, M, N, P, S are disjoint, and none of them is White_Space.
enum class CharClass : uint8_t { kOther, kLetter, kMark, kNumber, kPunctuation, kSymbol, kSpace };

struct ClassRange {
  uint32_t first;
  uint32_t last;  // inclusive
  CharClass char_class;
};

std::span<const ClassRange> class_ranges();  // sorted, disjoint
CharClass class_of(uint32_t code_point);

struct Char {
  uint32_t code_point = 0;
  int byte_count = 0;  // 0 at the end of the text
  CharClass char_class = CharClass::kOther;

  bool is(CharClass c) const { return byte_count > 0 && char_class == c; }
  bool is_letter_or_mark() const { return is(CharClass::kLetter) || is(CharClass::kMark); }
  bool is_punctuation_or_symbol() const {
    return is(CharClass::kPunctuation) || is(CharClass::kSymbol);
  }
  bool is_line_break() const {
    return byte_count > 0 && (code_point == '\r' || code_point == '\n');
  }
};

// The character at `at`. A byte that begins no well-formed character is one kOther character of
// code point U+FFFD.
Char char_at(std::string_view text, size_t at);

// Byte count of the well-formed character that `bytes` begins with. 0: not yet known, the bytes are
// a proper beginning of one. Negative: ill-formed, -n bytes are its maximal beginning (WHATWG).
int character_length(std::string_view bytes);

}  // namespace fathom::text::internal
