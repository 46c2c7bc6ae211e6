#include "server/request_json.h"

#include <charconv>

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

}  // namespace

std::string repair_surrogates(std::string_view json) {
  std::string out(json);
  for (size_t at = json.find('\\'); at != std::string_view::npos;) {
    const int unit = code_unit(json, at);
    size_t next = at + (unit >= 0 ? 6 : 2);  // \" and \\ are two bytes
    if (is_high(unit) && is_low(code_unit(json, next)))
      next += 6;
    else if (is_high(unit) || is_low(unit))
      out.replace(at, 6, "\\uFFFD");
    at = next >= json.size() ? std::string_view::npos : json.find('\\', next);
  }
  return out;
}

RequestJson parse_request_json(std::string_view body, int64_t bytes_max) {
  RequestJson result;
  const JsonLimits limits{.bytes_max = bytes_max,
                          .depth_max = 128,
                          .values_max = 2'000'000,
                          .last_duplicate_wins = true,
                          .unique_names = {"messages", "input", "prompt", "tools", "model"}};
  std::string repaired;
  if (body.find("\\u") != std::string_view::npos) {
    repaired = repair_surrogates(body);
    body = repaired;
  }
  auto parsed = parse_json(body, limits);
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
  }
  return result;
}

}  // namespace fathom::server
