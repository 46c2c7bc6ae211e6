#include "server/access.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/log.h"
#include "base/sha256.h"

namespace fathom::server {

namespace {

constexpr size_t kKeyBytesMin = 8, kKeyBytesMax = 256;

std::string_view without_port(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_loopback_name(std::string_view name) {
  return equals_ignoring_case(name, "localhost") || name == "127.0.0.1" || name == "[::1]";
}

// No early exit: every byte of both is looked at.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

Status check_key(const std::string& key) {
  const bool is_printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (key.size() >= kKeyBytesMin && key.size() <= kKeyBytesMax && is_printable) return {};
  return error(Code::kInvalidArgument,
               "an API key of {} characters; keys have {} to {} printable ASCII characters without "
               "spaces",
               key.size(), kKeyBytesMin, kKeyBytesMax);
}

}  // namespace

Result<Access> Access::make(AccessOptions options) {
  Access access;
  for (const std::string& key : options.api_keys) {
    FATHOM_TRY(check_key(key));
    access.key_digests_.push_back(sha256_hex(key));
  }
  const auto& origins = options.cors_origins;
  if (std::find(origins.begin(), origins.end(), "*") != origins.end() && options.api_keys.empty())
    return error(Code::kInvalidArgument,
                 "--cors-origin '*' lets every web page ask this server; it needs an --api-key");
  access.options_ = std::move(options);
  access.options_.api_keys.clear();
  return access;
}

bool Access::has_valid_key(const HttpRequest& request) const {
  if (key_digests_.empty()) return true;
  std::vector<std::string> given;
  for (const Header& header : request.headers) {
    if (equals_ignoring_case(header.first, "x-api-key") ||
        equals_ignoring_case(header.first, "api-key"))
      given.push_back(header.second);
    constexpr std::string_view kBearer = "Bearer ";
    if (equals_ignoring_case(header.first, "Authorization") &&
        header.second.size() > kBearer.size() &&
        equals_ignoring_case(std::string_view(header.second).substr(0, kBearer.size()), kBearer))
      given.push_back(header.second.substr(kBearer.size()));
  }
  if (given.empty()) given.emplace_back();  // no credential costs the same as a wrong one
  bool is_valid = false;
  for (const std::string& key : given) {
    const std::string digest = sha256_hex(key);
    for (const std::string& known : key_digests_) is_valid |= equal_in_constant_time(digest, known);
  }
  return is_valid;
}

bool Access::is_allowed_host(std::string_view host) const {
  if (!options_.is_loopback_only) return true;
  const std::string_view name = without_port(host);
  if (is_loopback_name(name)) return true;
  return std::any_of(options_.allowed_hosts.begin(), options_.allowed_hosts.end(),
                     [&](const std::string& allowed) {
                       return equals_ignoring_case(allowed, name) ||
                              equals_ignoring_case(allowed, host);
                     });
}

bool Access::is_allowed_origin(std::string_view origin, std::string_view host) const {
  const auto& listed = options_.cors_origins;
  if (std::find(listed.begin(), listed.end(), origin) != listed.end() ||
      std::find(listed.begin(), listed.end(), "*") != listed.end())
    return true;
  for (std::string_view scheme : {"http://", "https://"}) {
    if (origin.substr(0, scheme.size()) != scheme) continue;
    const std::string_view origin_host = origin.substr(scheme.size());
    if (!host.empty() && equals_ignoring_case(origin_host, host)) return true;  // our own page
    if (is_loopback_name(without_port(origin_host))) return true;
  }
  return false;
}

Result<std::vector<std::string>> read_key_file(const std::string& path) {
  std::ifstream file(path);
  struct stat info {};
  if (!file || stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode))
    return error(Code::kNotFound, "{}: wanted a file of keys, found {}", path,
                 file ? "a folder" : "none that can be read");
  if ((info.st_mode & 077) != 0)
    log(LogLevel::kWarning, "key file {} can be read by other users; chmod 600 it", path);
  std::vector<std::string> keys;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    FATHOM_TRY(check_key(line).with_context(fmt::format("{} line {}", path, number)));
    keys.push_back(line);
  }
  if (keys.empty())
    return error(Code::kInvalidArgument, "the key file {} holds no key; wanted one a line", path);
  return keys;
}

}  // namespace fathom::server
