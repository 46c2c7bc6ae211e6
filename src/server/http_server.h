// Listens, accepts and counts connections; owns the network thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "server/connection.h"

namespace fathom::server {

struct ListenOptions {
  std::string host = "127.0.0.1";  // an address, or localhost
  int port = 8080;                 // 0: any free one
  ConnectionLimits limits;
};

// kInvalidArgument when `host` is neither an address nor localhost.
Status check_listen_address(const std::string& host);
bool is_loopback_address(const std::string& host);

class HttpServer {
 public:
  // kInvalidArgument for an address that is none; kUnavailable when the port is taken. The handler
  // outlives the server.
  static Result<std::unique_ptr<HttpServer>> start(const ListenOptions& options,
                                                   RequestHandler& handler);
  ~HttpServer();  // closes every connection

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::server
