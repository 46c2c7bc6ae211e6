#include "server/gate.h"

#include <algorithm>
#include <utility>

#include "server/api_error.h"
#include "server/http_head.h"
#include "server/json_fields.h"
#include "server/web_files.h"

namespace fathom::server {

namespace {

// "type/subtype" without parameters.
std::string_view media_type(std::string_view value) {
  value = value.substr(0, value.find(';'));
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  return value;
}

// A list of header names: tokens, commas and spaces.
bool is_token_list(std::string_view list) {
  return std::all_of(list.begin(), list.end(),
                     [](char c) { return is_token_char(c) || c == ',' || c == ' '; });
}

HttpResponse refuse(int status, const char* code, std::string message) {
  return error_response({status, code, std::move(message), {}});
}

HttpResponse preflight(const HttpRequest& head, const std::string& origin) {
  HttpResponse response;
  response.status = 204;
  response.headers = {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                      {"Access-Control-Max-Age", "600"}};
  const std::string* wanted = head.header("Access-Control-Request-Headers");
  if (wanted && is_token_list(*wanted))
    response.headers.emplace_back("Access-Control-Allow-Headers", *wanted);
  if (!origin.empty() && head.header("Access-Control-Request-Private-Network"))
    response.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  return response;
}

std::optional<HttpResponse> refusal(const HttpRequest& head, const Route& route,
                                    const Access& access) {
  if (!route.is_public && !access.has_valid_key(head))
    return refuse(401, "invalid_api_key",
                  "a valid API key is needed: Authorization: Bearer KEY or x-api-key: KEY");
  if (route.endpoint == Endpoint::kUnknown) {
    const std::string hint = route.hint.empty() ? "" : ": " + route.hint;
    return refuse(404, "unknown_url", "there is nothing at " + shown_text(head.path) + hint);
  }
  if (!allows_method(route, head.method)) {
    HttpResponse response = refuse(405, "method_not_allowed",
                                   fmt::format("{}: wanted {}, found {}", shown_text(head.path),
                                               route.allowed_methods, shown_text(head.method)));
    response.headers.emplace_back("Allow", std::string(route.allowed_methods) + ", OPTIONS");
    return response;
  }
  if (head.method != "POST") return std::nullopt;
  const std::string* encoding = head.header("Content-Encoding");
  if (encoding && !encoding->empty() && !equals_ignoring_case(*encoding, "identity"))
    return refuse(415, "unsupported_encoding",
                  "Content-Encoding: wanted identity, found " + shown_text(*encoding));
  // A page of another site can send forms and plain text without asking first, but not JSON.
  const std::string* type = head.header("Content-Type");
  if (head.header("Origin") &&
      !(type && equals_ignoring_case(media_type(*type), "application/json")))
    return refuse(415, "unsupported_media_type",
                  "Content-Type: wanted application/json of a web page, found " +
                      (type ? shown_text(*type) : "none"));
  return std::nullopt;
}

}  // namespace

Route route_of(const HttpRequest& head) {
  Route route = find_route(head.path);
  if (route.endpoint == Endpoint::kPage && !find_web_file(route.rest)) return {};
  return route;
}

void Gate::set_access(Access access) {
  auto fresh = std::make_shared<const Access>(std::move(access));
  std::lock_guard lock(mu_);
  access_ = std::move(fresh);
}

std::shared_ptr<const Access> Gate::access() const {
  std::lock_guard lock(mu_);
  return access_;
}

HeadVerdict Gate::check(const HttpRequest& head, const Route& route, bool is_reserved) const {
  const auto access = this->access();
  HeadVerdict verdict;
  const std::string* host = head.header("Host");
  const std::string* origin = head.header("Origin");
  if (host && !access->is_allowed_host(*host)) {
    verdict.reply = refuse(403, "forbidden_host",
                           "Host: wanted localhost, 127.0.0.1, [::1] or a name that "
                           "--allowed-host gives, found " +
                               shown_text(*host));
    return verdict;
  }
  if (origin) {
    if (!access->is_allowed_origin(*origin, host ? *host : "")) {
      verdict.reply = refuse(403, "forbidden_origin",
                             "Origin: wanted this server's own, a loopback one or one that "
                             "--cors-origin gives, found " +
                                 shown_text(*origin));
      return verdict;
    }
    verdict.headers = {{"Access-Control-Allow-Origin", *origin},
                       {"Vary", "Origin"},
                       {"Access-Control-Expose-Headers", "x-request-id, retry-after"}};
  }
  if (is_reserved && route.endpoint != Endpoint::kHealth) {
    ApiError error{503, "too_many_connections", "too many connections; try again soon", {}};
    error.retry_after_s = 1;
    verdict.reply = error_response(error);
  } else if (head.method == "OPTIONS" && head.header("Access-Control-Request-Method")) {
    verdict.reply = preflight(head, origin ? *origin : "");
  } else {
    verdict.reply = refusal(head, route, *access);
  }
  return verdict;
}

}  // namespace fathom::server
