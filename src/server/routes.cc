#include "server/routes.h"

#include <array>
#include <utility>

#include "server/percent.h"

namespace fathom::server {

namespace {

constexpr std::string_view kGet = "GET, HEAD";
constexpr std::string_view kPost = "POST";

struct Entry {
  std::string_view path;
  Endpoint endpoint;
  std::string_view methods;
  bool is_public = false;
};

constexpr std::array<Entry, 7> kEntries = {{
    {"/health", Endpoint::kHealth, kGet, true},
    {"/models", Endpoint::kModels, kGet},
    {"/props", Endpoint::kProps, kGet},
    {"/chat/completions", Endpoint::kChatCompletions, kPost},
    {"/tokenize", Endpoint::kTokenize, kPost},
    {"/detokenize", Endpoint::kDetokenize, kPost},
    {"/apply-template", Endpoint::kApplyTemplate, kPost},
}};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

Route find_route(std::string_view path) {
  if (path == "/") return {Endpoint::kPage, "index.html", kGet, true, {}};
  std::string_view rest = path;
  if (starts_with(rest, "/beta/")) rest.remove_prefix(5);
  if (starts_with(rest, "/v1/")) rest.remove_prefix(3);
  if (starts_with(rest, "/v1/"))
    return {Endpoint::kUnknown, {}, {}, false, "the base URL already contains /v1"};

  constexpr std::string_view kModelPrefix = "/models/";
  if (starts_with(rest, kModelPrefix) && rest.size() > kModelPrefix.size())
    return {Endpoint::kModels, percent_decoded(rest.substr(kModelPrefix.size())), kGet, false, {}};
  if (rest.size() > 1 && rest.back() == '/') rest.remove_suffix(1);
  for (const Entry& entry : kEntries)
    if (entry.path == rest) return {entry.endpoint, {}, entry.methods, entry.is_public, {}};
  // The page's files are looked up by name in a table of what was embedded.
  if (rest.data() == path.data() && path.size() > 1)
    return {Endpoint::kPage, std::string(path.substr(1)), kGet, true, {}};
  return {};
}

bool allows_method(const Route& route, std::string_view method) {
  if (route.allowed_methods == kGet) return method == "GET" || method == "HEAD";
  return method == route.allowed_methods;
}

}  // namespace fathom::server
