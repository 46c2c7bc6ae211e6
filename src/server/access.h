// Who may ask: keys, Host and Origin, and what CORS answers (HTTP API §3). Immutable after make.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/http_message.h"

namespace fathom::server {

struct AccessOptions {
  std::vector<std::string> api_keys = {};       // none: everybody on this machine may ask
  std::vector<std::string> allowed_hosts = {};  // besides loopback names, when bound to loopback
  std::vector<std::string> cors_origins = {};   // besides loopback origins; "*" only with keys
  bool is_loopback_only = true;                 // the listening address is a loopback address
};

class Access {
 public:
  // kInvalidArgument: a key of another form than 8..256 printable ASCII characters, or "*" as an
  // origin without keys.
  static Result<Access> make(AccessOptions options);

  // A request without or with any credential passes when there are no keys. Takes the same time
  // whichever key is wrong, and where.
  bool has_valid_key(const HttpRequest& request) const;
  bool needs_key() const { return !key_digests_.empty(); }
  // Guards against DNS rebinding when only this machine is meant to ask.
  bool is_allowed_host(std::string_view host) const;
  // A page of this origin may ask. A request without an Origin does not come from a page.
  bool is_allowed_origin(std::string_view origin, std::string_view host) const;

 private:
  AccessOptions options_;
  std::vector<std::string> key_digests_;  // hex SHA-256, so that lengths tell nothing
};

// Lines of a key file: blank lines and # lines skipped, CR stripped. An error names the line.
Result<std::vector<std::string>> read_key_file(const std::string& path);

}  // namespace fathom::server
