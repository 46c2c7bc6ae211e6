#include "server/json_fields.h"

#include <cmath>
#include <utility>

#include "server/json_output.h"

namespace fathom::server {

std::string shown_text(std::string_view text) {
  constexpr size_t kShownBytes = 60;
  if (text.size() <= kShownBytes) return std::string(text);
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return "\"" + shown_text(value.get_ref<const std::string&>()) + "\"";
  return shown_text(json_text(value));
}

std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= INT64_MAX) return static_cast<int64_t>(number);
    return std::nullopt;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kLimit = 9007199254740992.0;  // 2^53: above it floats skip whole numbers
  if (std::floor(number) != number || std::abs(number) > kLimit) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string JsonFields::path_of(const char* name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void JsonFields::fail(ApiError error) {
  if (!*error_) *error_ = std::move(error);
}

const Json* JsonFields::find(const char* name) const {
  if (has_failed()) return nullptr;
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const Json* JsonFields::of_type(const char* name, bool (Json::*is_type)() const,
                                const char* wanted) {
  const Json* value = find(name);
  if (!value || (value->*is_type)()) return value;
  const std::string path = path_of(name);
  fail(invalid_type(path, fmt::format("{}: wanted {}, found {}", path, wanted, shown(*value))));
  return nullptr;
}

const Json* JsonFields::object(const char* name) {
  return of_type(name, &Json::is_object, "an object");
}

const Json* JsonFields::array(const char* name) {
  return of_type(name, &Json::is_array, "an array");
}

std::optional<bool> JsonFields::boolean(const char* name) {
  const Json* value = of_type(name, &Json::is_boolean, "true or false");
  return value ? std::optional(value->get<bool>()) : std::nullopt;
}

std::optional<std::string> JsonFields::string(const char* name) {
  const Json* value = of_type(name, &Json::is_string, "a string");
  return value ? std::optional(value->get<std::string>()) : std::nullopt;
}

std::optional<int64_t> JsonFields::integer(const char* name, int64_t min, int64_t max) {
  const Json* value = of_type(name, &Json::is_number, "a whole number");
  if (!value) return std::nullopt;
  const std::string path = path_of(name);
  const auto number = whole_number(*value);
  if (!number && value->is_number_float() && std::abs(value->get<double>()) < 1e15)
    fail(invalid_type(path,
                      fmt::format("{}: wanted a whole number, found {}", path, shown(*value))));
  else if (!number || *number < min || *number > max)
    fail(invalid_value(
        path, fmt::format("{}: wanted {} to {}, found {}", path, min, max, shown(*value))));
  else
    return number;
  return std::nullopt;
}

std::optional<double> JsonFields::number(const char* name, double min, double max) {
  const Json* value = of_type(name, &Json::is_number, "a number");
  if (!value) return std::nullopt;
  const double number = value->get<double>();
  if (number >= min && number <= max) return number;
  const std::string path = path_of(name);
  fail(invalid_value(path,
                     fmt::format("{}: wanted {} to {}, found {}", path, min, max, shown(*value))));
  return std::nullopt;
}

}  // namespace fathom::server
