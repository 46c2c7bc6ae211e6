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

// UTF-8 only (400 otherwise), one leading BOM skipped, at most 128 levels, an object at the top. A
// lone surrogate escape becomes U+FFFD: clients cut strings in the middle of emoji. The last of
// duplicate keys wins, but messages, input, prompt, tools and model may not appear twice.
RequestJson parse_request_json(std::string_view body, int64_t bytes_max);

// Every lone \uD800..\uDFFF escape replaced by \uFFFD.
std::string repair_surrogates(std::string_view json);

}  // namespace fathom::server
