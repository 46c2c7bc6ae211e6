#include "text/internal/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/internal/unicode_classes.h"

namespace fathom::text::internal {

namespace {

constexpr int kAlphabetEnd = 0x144;

struct Alphabet {
  std::array<uint32_t, 256> char_of;
  std::array<int, kAlphabetEnd> byte_of;  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet{};
  for (int& byte : alphabet.byte_of) byte = -1;
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool is_itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    alphabet.char_of[b] = is_itself ? b : next++;
    alphabet.byte_of[alphabet.char_of[b]] = static_cast<int>(b);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) {
    const uint32_t c = kAlphabet.char_of[static_cast<uint8_t>(byte)];
    if (c < 0x80) {
      spelling += static_cast<char>(c);
    } else {
      spelling += static_cast<char>(0xC0 | c >> 6);
      spelling += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return spelling;
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    const Char c = char_at(spelling, at);
    if (c.code_point >= kAlphabetEnd || kAlphabet.byte_of[c.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte_of[c.code_point]);
    at += c.byte_count;
  }
  return bytes;
}

}  // namespace fathom::text::internal
