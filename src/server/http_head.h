// The strict reading of a request's head: what an attacker could have two parsers read differently
// is refused here, before the HTTP library sees it (HTTP API §11.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace fathom::server {

struct HeadLimits {
  int64_t request_line_bytes_max = 8 << 10;
  int64_t head_bytes_max = 32 << 10;
  int64_t header_count_max = 100;
};

struct HeadError {
  int status = 400;  // 400, 414, 431
  std::string message;
};

struct HeadCheck {
  int64_t head_bytes = 0;          // 0: not complete yet
  std::optional<HeadError> error;  // read nothing more
};

// Looks at the bytes received so far. A complete head has only CRLF line ends, token names directly
// followed by a colon, no continuation lines, no control characters, and stays inside the limits.
HeadCheck check_head(std::string_view bytes, const HeadLimits& limits);

// What the head says about the body.
struct BodyPlan {
  bool is_chunked = false;
  int64_t content_bytes = 0;  // 0 with is_chunked
};

struct BodyPlanOrError {
  BodyPlan plan;
  std::optional<HeadError> error;
};

// At most one of Content-Length (digits only) and Transfer-Encoding (exactly "chunked"), and one
// Host.
BodyPlanOrError plan_body(const HttpRequest& head);

// Of methods and header names (RFC 9110, token).
bool is_token_char(char c);

// The path of a request target in origin or absolute form; empty if it has none.
std::string path_of_target(std::string_view target);

}  // namespace fathom::server
