#include "server/api_error.h"

#include <utility>

#include "server/json_output.h"

namespace fathom::server {

namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 500:
      return "server_error";
    case 501:
      return "not_supported_error";
    case 503:
      return "unavailable_error";
    case 504:
      return "timeout_error";
    default:
      return "invalid_request_error";
  }
}

}  // namespace

ApiError invalid_value(std::string param, std::string message) {
  return {400, "invalid_value", std::move(message), std::move(param)};
}
ApiError invalid_type(std::string param, std::string message) {
  return {400, "invalid_type", std::move(message), std::move(param)};
}
ApiError unsupported_parameter(std::string param, std::string message) {
  return {400, "unsupported_parameter", std::move(message), std::move(param)};
}
ApiError unsupported_value(std::string param, std::string message) {
  return {400, "unsupported_value", std::move(message), std::move(param)};
}

ApiError context_length_exceeded(int64_t prompt_tokens, int64_t context_tokens, std::string param) {
  ApiError error{400, "context_length_exceeded", {}, std::move(param)};
  error.message = fmt::format(
      "This model's maximum context length is {} tokens; the prompt has {}. Shorten the messages.",
      context_tokens, prompt_tokens);
  error.prompt_tokens = prompt_tokens;
  error.context_tokens = context_tokens;
  return error;
}

ApiError api_error(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return {400, "invalid_value", status.message(), {}};
    case Code::kUnsupported:
      return {400, "unsupported_value", status.message(), {}};
    case Code::kNotFound:
      return {404, "unknown_url", status.message(), {}};
    case Code::kUnavailable: {
      ApiError error{503, "shutting_down", status.message(), {}};
      error.retry_after_s = 5;
      return error;
    }
    case Code::kResourceExhausted: {
      ApiError error{503, "out_of_memory", status.message(), {}};
      error.retry_after_s = 5;
      return error;
    }
    case Code::kDeadlineExceeded:
      return {504, "queue_timeout", status.message(), {}};
    default:
      return {500, "internal_error", status.message(), {}};
  }
}

ApiError picture_error(const Status& status, const std::string& path) {
  if (status.code() == Code::kUnavailable) {  // the decoders are taken, not the picture bad
    ApiError error{429, "too_many_requests", path + ": " + status.message(), path};
    error.retry_after_s = 1;
    return error;
  }
  const char* code = status.code() == Code::kUnsupported         ? "unsupported_image_format"
                     : status.code() == Code::kResourceExhausted ? "image_too_large"
                                                                 : "invalid_image";
  return {400, code, path + ": " + status.message(), path};
}

std::string error_body(const ApiError& error) {
  Json inner = {{"message", error.message},
                {"type", type_of(error.status)},
                {"param", error.param.empty() ? Json() : Json(error.param)},
                {"code", error.code.empty() ? Json() : Json(error.code)}};
  if (error.context_tokens >= 0) {
    inner["n_prompt_tokens"] = error.prompt_tokens;
    inner["n_ctx"] = error.context_tokens;
  }
  return json_text({{"error", std::move(inner)}});
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_body(error);
  if (error.retry_after_s > 0)
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status == 501) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

}  // namespace fathom::server
