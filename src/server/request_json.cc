#include "server/request_json.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/stream_decoder.h"

namespace fathom::server {

namespace {

// The code unit of the escape \uXXXX at `at`, or -1.
int code_unit(std::string_view json, size_t at) {
  if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return -1;
  unsigned value = 0;
  const char* begin = json.data() + at + 2;
  const auto result = std::from_chars(begin, begin + 4, value, 16);
  return result.ec == std::errc() && result.ptr == begin + 4 ? static_cast<int>(value) : -1;
}

bool is_high(int unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low(int unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

constexpr std::string_view kDamage = "\xEF\xB7\x90";       // U+FDD0, until its place is known
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Lone surrogate escapes, made escapes of kDamage.
std::string mark_surrogates(std::string_view json) {
  std::string out(json);
  for (size_t at = json.find('\\'); at != std::string_view::npos;) {
    const int unit = code_unit(json, at);
    size_t next = at + (unit >= 0 ? 6 : 2);  // \" and \\ are two bytes
    if (is_high(unit) && is_low(code_unit(json, next)))
      next += 6;
    else if (is_high(unit) || is_low(unit))
      out.replace(at, 6, "\\uFDD0");
    at = next >= json.size() ? std::string_view::npos : json.find('\\', next);
  }
  return out;
}

// Invalid UTF-8, made kDamage. U+FFFD that the client wrote stays what it is.
std::string mark_bytes(std::string_view json) {
  std::string out;
  size_t begin = 0;
  for (size_t at = 0; at <= json.size();) {
    at = json.find(kReplacement, begin);
    at = at == std::string_view::npos ? json.size() : at;
    std::string piece = text::to_valid_utf8(json.substr(begin, at - begin));
    for (size_t bad = piece.find(kReplacement); bad != std::string::npos;
         bad = piece.find(kReplacement, bad))
      piece.replace(bad, kReplacement.size(), kDamage);
    out += piece;
    if (at == json.size()) break;
    out += kReplacement;
    begin = at + kReplacement.size();
  }
  return out;
}

bool holds_damage(const Json& value) {
  if (value.is_string())
    return value.get_ref<const std::string&>().find(kDamage) != std::string::npos;
  if (value.is_object())
    return std::any_of(value.items().begin(), value.items().end(), [](const auto& item) {
      return item.key().find(kDamage) != std::string::npos || holds_damage(item.value());
    });
  return value.is_array() && std::any_of(value.begin(), value.end(), holds_damage);
}

void replace_damage(Json* value) {
  if (value->is_string()) {
    auto& text = value->get_ref<std::string&>();
    for (size_t at = text.find(kDamage); at != std::string::npos; at = text.find(kDamage, at))
      text.replace(at, kDamage.size(), kReplacement);
  }
  if (value->is_structured())
    for (Json& inner : *value) replace_damage(&inner);
}

// What was marked is replaced in texts, and an error anywhere else.
std::optional<ApiError> settle_damage(Json* object) {
  for (const auto& item : object->items()) {
    const std::string& name = item.key();
    if (name == "messages" || name == "prompt" || name == "content") {
      replace_damage(&item.value());
    } else if (name.find(kDamage) != std::string::npos || holds_damage(item.value())) {
      return ApiError{400, "invalid_json",
                      "text that is not valid UTF-8, or half of a surrogate pair; only messages "
                      "may hold such",
                      text::is_valid_utf8(name) && name.find(kDamage) == std::string::npos
                          ? name
                          : std::string()};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string mark_damage(std::string_view json) {
  const std::string with_surrogates =
      json.find("\\u") == std::string_view::npos ? std::string(json) : mark_surrogates(json);
  return text::is_valid_utf8(with_surrogates) ? with_surrogates : mark_bytes(with_surrogates);
}

RequestJson parse_request_json(std::string_view body, int64_t bytes_max) {
  RequestJson result;
  const JsonLimits limits{.bytes_max = bytes_max,
                          .depth_max = 128,
                          .values_max = 2'000'000,
                          .last_duplicate_wins = true,
                          .unique_names = {"messages", "input", "prompt", "tools", "model"}};
  // A document without escapes and with valid UTF-8 is parsed as it is.
  std::string marked;
  if (body.find("\\u") != std::string_view::npos || !text::is_valid_utf8(body)) {
    marked = mark_damage(body);
    if (marked == body) marked.clear();
  }
  auto parsed = parse_json(marked.empty() ? body : marked, limits);
  if (!parsed) {
    result.error = ApiError{400, "invalid_json", parsed.status().message(), {}};
  } else if (!parsed->is_object()) {
    result.error = ApiError{400,
                            "invalid_json",
                            fmt::format("the body must be a JSON object, found {}",
                                        parsed->is_array() ? "an array" : "another value"),
                            {}};
  } else {
    result.object = std::move(*parsed);
    if (!marked.empty()) result.error = settle_damage(&result.object);
  }
  return result;
}

}  // namespace fathom::server
