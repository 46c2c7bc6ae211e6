// The coroutine of one connection. Private: only http_server.cc and connection.cc see the sockets.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/connection.h"

namespace fathom::server::internal {

class Exchange;

// Shared by all connections of a server; network thread only.
struct ConnectionShared {
  RequestHandler& handler;
  const ConnectionLimits limits;
  // Of requests that are being read or answered: what was in them lives on as prompts and pictures.
  int64_t bodies_bytes = 0;
};

// Made shared; run() is called once and keeps it alive until the connection is done with. Network
// thread only. One wait at a time, each with a deadline.
//   Idle ─first byte─► Head ─► Body ─► Answer ─► Idle (keep-alive) or closed
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<ConnectionShared> shared,
             bool is_reserved);
  ~Connection();

  boost::asio::awaitable<void> run();
  void close();
  bool is_idle() const { return is_idle_; }  // no byte of a request has come

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> read_head();
  boost::asio::awaitable<bool> read_body(Parser& parser, const BodyPlan& plan,
                                         const std::vector<Header>& headers);
  boost::asio::awaitable<std::optional<int>> receive_body(Parser& parser, const BodyPlan& plan,
                                                          int64_t bytes_max);
  boost::asio::awaitable<bool> answer(std::shared_ptr<Exchange> exchange, bool keep_alive,
                                      std::vector<Header> headers);
  boost::asio::awaitable<bool> write(std::string_view bytes);
  boost::asio::awaitable<void> refuse(HttpResponse response, const std::vector<Header>& headers);
  bool parse_head(Parser& parser);
  std::string_view buffered() const;
  bool has_peer_left();
  bool reserve_body(int64_t bytes);
  void release_body();
  // The read or write under way is broken off, with has_timed_out_ set, when the time is over.
  void arm(std::chrono::milliseconds time);
  void disarm();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<ConnectionShared> shared_;
  const bool is_reserved_;
  boost::beast::flat_buffer buffer_;    // bounded, so that no line can grow for ever
  boost::asio::steady_timer deadline_;  // of the read or write under way
  boost::asio::steady_timer wake_;      // cancelled when an answer has something to send
  uint64_t deadline_count_ = 0;         // a timer that fires late for an older wait is ignored
  bool has_timed_out_ = false;
  bool is_idle_ = true;
  int64_t body_bytes_reserved_ = 0;
  HttpRequest request_;  // the one being read or answered
};

}  // namespace fathom::server::internal
