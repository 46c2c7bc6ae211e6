#include "text/internal/json_fields.h"

namespace fathom::text::internal {

namespace {

// What of `text` fits a line, cut between characters.
std::string_view cut(std::string_view text) {
  constexpr size_t kShownBytes = 60;
  if (text.size() <= kShownBytes) return text;
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string size_note(std::string_view text) {
  return cut(text).size() == text.size() ? "" : fmt::format("... ({} bytes)", text.size());
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"{}", cut(text), size_note(text));
}

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return std::string(cut(text)) + size_note(text);
}

const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

bool is_string(const Json& value, std::string_view wanted) {
  return value.is_string() && value.get_ref<const std::string&>() == wanted;
}

bool is_set(const Json& value) {
  return !(value.is_null() || value == false || is_string(value, "") || value == 0);
}

std::optional<int64_t> integer(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<int64_t>();
}

}  // namespace fathom::text::internal
