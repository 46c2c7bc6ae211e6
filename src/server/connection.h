// One client connection: heads, bodies and answers in turn, every wait with a deadline. Runs on the
// server's one network thread; only the Responder it hands out may be used from elsewhere. The HTTP
// and socket libraries stay in connection.cc and http_server.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/http_head.h"
#include "server/http_message.h"

namespace fathom::server {

struct ConnectionLimits {
  HeadLimits head;
  int64_t body_bytes_max = 64 << 20;
  int64_t bodies_bytes_max = int64_t{1} << 30;      // of all connections together
  std::chrono::milliseconds head_time_max{10'000};  // from the first byte of a head to its end
  std::chrono::milliseconds body_pause_max{30'000};
  int64_t body_bytes_per_second_min = 16 << 10;  // on average, after body_pause_max
  std::chrono::milliseconds idle_time_max{75'000};
  std::chrono::milliseconds write_pause_max{60'000};
  int64_t unsent_bytes_max = 1 << 20;          // of a stream whose reader is slow
  std::chrono::milliseconds heartbeat{5'000};  // silence of a stream before a ping; 0: never
  int64_t connections_max = 512;
  int64_t connections_per_peer_max = 128;
};

// What a complete head leads to.
struct HeadVerdict {
  std::optional<HttpResponse> reply;  // answered at once, the body is not read
  std::vector<Header> headers;        // of this request's response, whatever it will be (CORS)
};

// The application behind the connections. Called on the network thread; must not block.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Decides from the head alone: a refusal here costs no body, and no body is read after it.
  // `is_reserved`: a connection over the limit, kept for health checks only.
  virtual HeadVerdict on_head(const HttpRequest& head, bool is_reserved) = 0;
  // A whole request; one answer through `responder`, from any thread, at any later time.
  virtual void on_request(HttpRequest request, std::shared_ptr<Responder> responder) = 0;
  virtual bool is_draining() const = 0;  // answers end with Connection: close
};

}  // namespace fathom::server
