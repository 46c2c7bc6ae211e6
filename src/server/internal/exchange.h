// The Responder of one request: a queue between the threads that produce an answer and the
// connection that sends it.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "server/http_message.h"

namespace fathom::server::internal {

class Exchange : public Responder {
 public:
  // `wake` tells the connection that there is something to take; any thread may call it.
  Exchange(int64_t unsent_bytes_max, std::function<void()> wake);

  void send(HttpResponse response) override;
  void begin_stream() override;
  void write(std::string bytes) override;
  void end_stream() override;
  void on_gone(std::function<void()> callback) override;

  // --- the connection's side ---
  struct Outgoing {
    std::optional<HttpResponse> response;  // the whole answer
    bool begins_stream = false;
    std::string bytes;  // of a stream
    bool is_end = false;
    bool is_empty() const { return !response && !begins_stream && bytes.empty() && !is_end; }
  };
  Outgoing take();              // what has come since the last call
  void mark_gone();             // the client left: runs on_gone, and `wake` is never called again
  bool is_overflowing() const;  // the reader was too slow: the answer is given up

 private:
  template <typename F>
  void change(F&& f);
  template <typename F>
  void finish(F&& f);

  const int64_t unsent_bytes_max_;
  const std::function<void()> wake_;
  mutable std::mutex mu_;
  Outgoing out_;            // all guarded by mu_
  bool has_ended_ = false;  // nothing more is accepted
  bool is_gone_ = false;
  bool is_overflowing_ = false;
  std::function<void()> on_gone_;
};

}  // namespace fathom::server::internal
