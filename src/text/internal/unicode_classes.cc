#include "text/internal/unicode_classes.h"

#include <algorithm>
#include <array>

namespace fathom::text::internal {

CharClass class_of(uint32_t code_point) {
  const auto ranges = class_ranges();
  const auto next = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                     [](uint32_t c, const ClassRange& r) { return c < r.first; });
  if (next == ranges.begin() || code_point > (next - 1)->last) return CharClass::kOther;
  return (next - 1)->char_class;
}

int character_length(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (bytes.empty()) return 0;
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return -1;  // continuation, overlong or beyond U+10FFFF
  const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has a range of its own: no overlong forms, surrogates or too large ones.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) >= bytes.size()) return 0;
    if (byte(i) < low || byte(i) > high) return -i;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

Char char_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {};
  const auto lead = static_cast<uint8_t>(text[at]);
  static const auto ascii = [] {
    std::array<CharClass, 128> classes;
    for (uint32_t c = 0; c < 128; ++c) classes[c] = class_of(c);
    return classes;
  }();
  if (lead < 0x80) return {lead, 1, ascii[lead]};
  const int length = character_length(text.substr(at, 4));
  if (length <= 0) return {0xFFFD, 1, CharClass::kOther};
  uint32_t code_point = lead & (0x7F >> length);
  for (int i = 1; i < length; ++i)
    code_point = code_point << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  return {code_point, length, class_of(code_point)};
}

}  // namespace fathom::text::internal
