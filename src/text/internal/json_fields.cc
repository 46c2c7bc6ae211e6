#include "text/internal/json_fields.h"

namespace fathom::text::internal {

std::string in_quotes(std::string_view text) {
  constexpr size_t kShown = 60;
  if (text.size() <= kShown) return fmt::format("\"{}\"", text);
  size_t end = kShown;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("\"{}...\" ({} bytes)", text.substr(0, end), text.size());
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

std::string shown(const Json& value) {
  return in_quotes(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<int64_t> integer(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<int64_t>();
}

}  // namespace fathom::text::internal
