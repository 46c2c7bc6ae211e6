// Plain requests and responses, and the way a handler answers from any thread. The sockets behind
// them are connection.cc's business.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::server {

using Header = std::pair<std::string, std::string>;

struct HttpRequest {
  std::string method;
  std::string target;      // as sent
  std::string path;        // of the target: no scheme, host or query; not decoded
  std::string request_id;  // the client's, if it is harmless, else ours
  bool is_http_1_0 = false;
  std::vector<Header> headers;
  std::string body;

  // The value of the first header of this name (any letter case), or null.
  const std::string* header(std::string_view name) const;
  int64_t header_count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::vector<Header> headers;  // besides those that every response has
  std::string content_type = "application/json";
  std::string body;
};

// Answers one request: one send, or begin_stream, writes and end_stream. Every method may be called
// from any thread and returns at once. After the client has left, calls have no effect.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void send(HttpResponse response) = 0;
  // A server-sent event stream: heartbeats fill pauses from here on.
  virtual void begin_stream() = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end_stream() = 0;
  // `callback` runs once on the server's thread when the client leaves, or reads too slowly, before
  // the answer is complete; at once if it already did. Null takes the callback back.
  virtual void on_gone(std::function<void()> callback) = 0;
};

bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace fathom::server
