// The one table from what went wrong to what a client is told (HTTP API §4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/http_message.h"

namespace fathom::server {

struct ApiError {
  int status = 400;
  std::string code;     // machine-readable; empty: null
  std::string message;  // names the field and never quotes more than 100 bytes of the client's data
  std::string param;    // path of the field; empty: null
  int64_t prompt_tokens = -1;  // both set with context_length_exceeded
  int64_t context_tokens = -1;
  int64_t retry_after_s = 0;  // > 0: Retry-After
};

// Shorthands for the commonest: HTTP 400 with code invalid_value, invalid_type, unsupported_...
ApiError invalid_value(std::string param, std::string message);
ApiError invalid_type(std::string param, std::string message);
ApiError unsupported_parameter(std::string param, std::string message);
ApiError unsupported_value(std::string param, std::string message);
ApiError context_length_exceeded(int64_t prompt_tokens, int64_t context_tokens, std::string param);

// From a failure of the engine or of the rooms below it.
ApiError api_error(const Status& status);

// Of a picture that could not be decoded; `path` names its place in the request.
ApiError picture_error(const Status& status, const std::string& path);

// {"error":{"message","type","param","code"}}, one line.
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace fathom::server
