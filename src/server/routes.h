// Paths to endpoints. Pure: no state, no body.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom::server {

enum class Endpoint {
  kUnknown,  // 404
  kPage,     // a file of the embedded chat page; Route::rest is its name
  kHealth,
  kProps,
  kModels,  // Route::rest is the id asked for, empty for the list
  kChatCompletions,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
};

struct Route {
  Endpoint endpoint = Endpoint::kUnknown;
  std::string rest;
  std::string_view allowed_methods;  // for Allow and the preflight: "GET, HEAD" or "POST"
  bool is_public = false;            // answers without a key
  std::string hint;                  // for a 404 that we can explain
};

// `path` as path_of_target gives it. With and without /v1, under /beta too; one trailing slash is
// tolerated. Only the model id is percent-decoded.
Route find_route(std::string_view path);

bool allows_method(const Route& route, std::string_view method);

}  // namespace fathom::server
