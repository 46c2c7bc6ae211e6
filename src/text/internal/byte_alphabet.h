// GPT-2's printable alphabet: each byte is spelled as one character, so that any bytes can stand in
// a JSON string. 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF are themselves; the other 68 are U+0100-U+0143.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom::text::internal {

std::string spell_bytes(std::string_view bytes);
// Nothing when `spelling` has a character outside the alphabet.
std::optional<std::string> unspell_bytes(std::string_view spelling);

}  // namespace fathom::text::internal
