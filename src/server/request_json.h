// A request's bytes to a JSON object, by the rules for requests (HTTP API §2.2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/api_error.h"

namespace fathom::server {

struct RequestJson {
  Json object;
  std::optional<ApiError> error;
};

// One leading BOM skipped, at most 128 levels, an object at the top. Invalid UTF-8 and lone
// surrogate escapes become U+FFFD in the text of messages, prompt and content, because clients cut
// strings in the middle of emoji; elsewhere they are refused. The last of duplicate keys wins, but
// messages, input, prompt, tools and model may not appear twice.
RequestJson parse_request_json(std::string_view body, int64_t bytes_max);

// The document with U+FDD0, which no text should hold, for each piece of invalid UTF-8, and its
// escape for each lone \uD800..\uDFFF. The same size or longer, never shorter.
std::string mark_damage(std::string_view json);

}  // namespace fathom::server
