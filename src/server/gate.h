// Decides from a request's head alone whether it is served: host, origin, preflight, route, key,
// method, type of body. What is refused here costs no work and its body is never read.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "server/access.h"
#include "server/connection.h"
#include "server/routes.h"

namespace fathom::server {

class Gate {
 public:
  explicit Gate(Access access) : access_(std::make_shared<const Access>(std::move(access))) {}

  // Any thread; requests that are being checked keep the access they began with.
  void set_access(Access access);

  // `route` is find_route(head.path). is_reserved: only health checks pass.
  HeadVerdict check(const HttpRequest& head, const Route& route, bool is_reserved) const;

 private:
  std::shared_ptr<const Access> access() const;

  mutable std::mutex mu_;
  std::shared_ptr<const Access> access_;  // guarded by mu_
};

// The route of a path, with names of the page that do not exist made unknown.
Route route_of(const HttpRequest& head);

}  // namespace fathom::server
