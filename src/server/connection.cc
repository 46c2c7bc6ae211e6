#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/read.hpp>
#include <cerrno>
#include <random>
#include <utility>

#include "base/log.h"
#include "server/api_error.h"
#include "server/internal/connection_loop.h"
#include "server/internal/exchange.h"
#include "server/request_id.h"
#include "server/response_text.h"

namespace fathom::server::internal {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

const std::vector<Header> kNoHeaders;
constexpr size_t kReadBytes = 64 << 10;
constexpr int64_t kChunkExtensionBytesMax = 256;
// Some clients send an empty object with a GET. What takes no body gets no room for one.
constexpr int64_t kBodyBytesMaxOfGet = 4096;
// How often a waiting answer looks whether its client is still there. A FIN can hide behind
// pipelined bytes, so this asks the kernel and not a read.
constexpr std::chrono::milliseconds kPeerCheckInterval{250};
// A connection over the limit is there for one quick health check.
constexpr std::chrono::milliseconds kReservedTime{1000};
// After an early refusal: time for the client to take the reply before the connection is cut.
constexpr std::chrono::milliseconds kLingerTime{2000};

// co_await operation(token(ec)): errors come back in ec, nothing throws.
auto token(error_code& ec) {
  return asio::redirect_error(asio::use_awaitable, ec);
}

ApiError transport_error(int status, std::string message) {
  ApiError error;
  error.status = status;
  error.message = std::move(message);
  return error;
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::shared_ptr<ConnectionShared> shared,
                       bool is_reserved)
    : socket_(std::move(socket)),
      shared_(std::move(shared)),
      is_reserved_(is_reserved),
      buffer_(static_cast<size_t>(shared_->limits.head.head_bytes_max) + 2 * kReadBytes),
      deadline_(socket_.get_executor()),
      wake_(socket_.get_executor()) {}

Connection::~Connection() {
  release_body();
}

void Connection::arm(std::chrono::milliseconds time) {
  has_timed_out_ = false;
  deadline_.expires_after(time);
  deadline_.async_wait([self = weak_from_this(), count = ++deadline_count_](error_code ec) {
    const auto connection = self.lock();
    if (ec || !connection || count != connection->deadline_count_) return;
    connection->has_timed_out_ = true;
    error_code ignored;
    connection->socket_.cancel(ignored);
  });
}

void Connection::disarm() {
  ++deadline_count_;
  deadline_.cancel();
}

void Connection::close() {
  error_code ignored;
  socket_.close(ignored);
  wake_.cancel();
  disarm();
}

std::string_view Connection::buffered() const {
  const auto data = buffer_.cdata();
  return {static_cast<const char*>(data.data()), data.size()};
}

bool Connection::has_peer_left() {
  pollfd fd{socket_.native_handle(), POLLRDHUP, 0};
  return !socket_.is_open() ||
         (::poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)));
}

bool Connection::reserve_body(int64_t bytes) {
  if (shared_->bodies_bytes + bytes > shared_->limits.bodies_bytes_max) return false;
  shared_->bodies_bytes += bytes;
  body_bytes_reserved_ += bytes;
  return true;
}

void Connection::release_body() {
  shared_->bodies_bytes -= std::exchange(body_bytes_reserved_, 0);
}

asio::awaitable<void> Connection::run() {
  const auto self = shared_from_this();  // alive while the coroutine is
  error_code ec;
  socket_.set_option(asio::ip::tcp::no_delay(true), ec);
  while (co_await serve_one()) {
  }
  close();
}

// A whole request and its answer. False: the connection is done with.
asio::awaitable<bool> Connection::serve_one() {
  request_ = {};
  request_.request_id = make_request_id();
  if (!co_await read_head()) co_return false;
  Parser parser;
  if (!parse_head(parser)) {
    co_await refuse(error_response(transport_error(400, "the request is not valid HTTP")),
                    kNoHeaders);
    co_return false;
  }
  const BodyPlanOrError body = plan_body(request_);
  if (body.error) {
    co_await refuse(error_response(transport_error(body.error->status, body.error->message)),
                    kNoHeaders);
    co_return false;
  }
  HeadVerdict verdict = shared_->handler.on_head(request_, is_reserved_);
  const bool wants_keep_alive = parser.get().keep_alive() && !is_reserved_;
  const bool keep_alive = wants_keep_alive && !shared_->handler.is_draining();
  const bool has_body = body.plan.is_chunked || body.plan.content_bytes > 0;
  if (verdict.reply && (has_body || !keep_alive)) {
    co_await refuse(std::move(*verdict.reply), verdict.headers);
    co_return false;
  }
  const auto exchange =
      std::make_shared<Exchange>(shared_->limits.unsent_bytes_max,
                                 [self = weak_from_this(), executor = socket_.get_executor()] {
                                   asio::post(executor, [self] {
                                     if (const auto connection = self.lock())
                                       connection->wake_.cancel();
                                   });
                                 });
  if (verdict.reply) {
    exchange->send(std::move(*verdict.reply));
  } else {
    if (!co_await read_body(parser, body.plan, verdict.headers)) co_return false;
    HttpRequest handed = request_;
    handed.body = std::move(parser.get().body());
    shared_->handler.on_request(std::move(handed), exchange);
  }
  const bool is_served = co_await answer(exchange, wants_keep_alive, std::move(verdict.headers));
  release_body();
  // The drain may have begun since the head came.
  const bool goes_on = is_served && wants_keep_alive && !shared_->handler.is_draining();
  co_return goes_on;
}

// Until the buffer starts with a complete, well-formed head.
asio::awaitable<bool> Connection::read_head() {
  is_idle_ = buffer_.size() == 0;
  const auto first_wait = is_reserved_ ? kReservedTime : shared_->limits.idle_time_max;
  arm(is_idle_ ? first_wait : shared_->limits.head_time_max);
  while (true) {
    const HeadCheck check = check_head(buffered(), shared_->limits.head);
    if (check.error) {
      disarm();
      co_await refuse(error_response(transport_error(check.error->status, check.error->message)),
                      kNoHeaders);
      co_return false;
    }
    if (check.head_bytes > 0) break;
    error_code ec;
    const size_t read = co_await socket_.async_read_some(buffer_.prepare(kReadBytes), token(ec));
    if (ec) {
      disarm();
      if (has_timed_out_ && !is_idle_)
        co_await refuse(error_response(transport_error(
                            408, "the headers did not arrive within the time for them")),
                        kNoHeaders);
      co_return false;
    }
    buffer_.commit(read);
    if (!std::exchange(is_idle_, false)) continue;
    arm(is_reserved_ ? kReservedTime : shared_->limits.head_time_max);
  }
  disarm();
  co_return true;
}

// Takes the head out of the buffer.
bool Connection::parse_head(Parser& parser) {
  parser.header_limit(static_cast<uint32_t>(shared_->limits.head.head_bytes_max) * 2);
  parser.body_limit(boost::none);  // receive_body sets it
  parser.eager(false);
  error_code ec;
  const size_t used = parser.put(buffer_.cdata(), ec);
  if (ec || !parser.is_header_done()) return false;
  buffer_.consume(used);
  const auto& message = parser.get();
  request_.method = std::string(message.method_string());
  request_.target = std::string(message.target());
  request_.path = path_of_target(request_.target);
  request_.is_http_1_0 = message.version() == 10;
  for (const auto& field : message)
    request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  if (const std::string* id = request_.header("X-Request-Id"); id && is_harmless_request_id(*id))
    request_.request_id = *id;
  return true;
}

// The whole body, or a refusal. False: the connection is done with.
asio::awaitable<bool> Connection::read_body(Parser& parser, const BodyPlan& plan,
                                            const std::vector<Header>& headers) {
  const int64_t bytes_max =
      request_.method == "POST" ? shared_->limits.body_bytes_max : kBodyBytesMaxOfGet;
  const std::optional<int> status = co_await receive_body(parser, plan, bytes_max);
  if (!status) co_return false;
  if (*status == 200) co_return true;
  ApiError error = transport_error(*status, {});
  if (*status == 413) {
    error.message = fmt::format("the body is longer than {} bytes, the most for a {} here",
                                bytes_max, request_.method);
  } else if (*status == 503) {
    error.message = "too many large bodies at once; try again soon";
    error.retry_after_s = 1;
  } else if (*status == 408) {
    error.message = "the body arrived too slowly";
  } else {
    error.message = "the chunked body is not valid, or a line between its chunks is too long";
  }
  co_await refuse(error_response(error), headers);
  co_return false;
}

// 200 when the parser has the whole body, else the status of the refusal; nothing when the client
// left. Room is reserved before the bytes are read, or as they come when no length was told.
asio::awaitable<std::optional<int>> Connection::receive_body(Parser& parser, const BodyPlan& plan,
                                                             int64_t bytes_max) {
  if (plan.content_bytes > bytes_max) co_return 413;
  if (!reserve_body(plan.content_bytes)) co_return 503;
  const std::string* expect = request_.header("Expect");
  if (expect && equals_ignoring_case(*expect, "100-continue") && !request_.is_http_1_0 &&
      buffer_.size() == 0 && !parser.is_done()) {
    if (!co_await write("HTTP/1.1 100 Continue\r\n\r\n")) co_return std::nullopt;
  }
  auto check_extensions = [](uint64_t, boost::beast::string_view extensions, error_code& ec) {
    if (static_cast<int64_t>(extensions.size()) > kChunkExtensionBytesMax)
      ec = http::error::bad_chunk_extension;
  };
  parser.on_chunk_header(check_extensions);
  parser.body_limit(static_cast<uint64_t>(bytes_max));
  parser.eager(true);
  const ConnectionLimits& limits = shared_->limits;
  const auto start = Clock::now();
  int64_t received = 0;
  while (!parser.is_done()) {
    error_code ec;
    arm(limits.body_pause_max);
    received +=
        static_cast<int64_t>(co_await http::async_read_some(socket_, buffer_, parser, token(ec)));
    disarm();
    if (ec == http::error::body_limit) co_return 413;
    if (ec && has_timed_out_) co_return 408;
    const bool has_left = ec == http::error::end_of_stream || ec == http::error::partial_message ||
                          (ec && ec.category() == asio::error::get_system_category());
    if (has_left) co_return std::nullopt;
    if (ec) co_return 400;
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (elapsed > limits.body_pause_max &&
        received * 1000 < limits.body_bytes_per_second_min * elapsed.count())
      co_return 408;
    if (plan.is_chunked &&
        !reserve_body(static_cast<int64_t>(parser.get().body().size()) - body_bytes_reserved_))
      co_return 503;
  }
  co_return 200;
}

asio::awaitable<bool> Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    error_code ec;
    arm(shared_->limits.write_pause_max);
    const size_t sent =
        co_await socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), token(ec));
    disarm();
    if (ec) co_return false;
    bytes.remove_prefix(sent);
  }
  co_return true;
}

// Sends what the exchange gets until its end. False when the client left or cannot follow.
asio::awaitable<bool> Connection::answer(std::shared_ptr<Exchange> exchange, bool keep_alive,
                                         std::vector<Header> headers) {
  ResponseFrame frame{request_.is_http_1_0, keep_alive, request_.method == "HEAD",
                      request_.request_id, std::move(headers)};
  bool is_stream = false;
  auto last_write = Clock::now();
  while (true) {
    Exchange::Outgoing out = exchange->take();
    std::string text;
    frame.keep_alive = keep_alive && !shared_->handler.is_draining();
    if (out.response) text = response_text(*out.response, frame);
    if (out.begins_stream) text += stream_head_text(frame);
    is_stream |= out.begins_stream;
    const auto silence = Clock::now() - last_write;
    if (is_stream && out.is_empty() && shared_->limits.heartbeat.count() > 0 &&
        silence >= shared_->limits.heartbeat)
      out.bytes = kHeartbeat;
    if (!out.bytes.empty()) text += frame.is_http_1_0 ? out.bytes : chunk_text(out.bytes);
    if (out.is_end && !frame.is_http_1_0) text += kLastChunk;
    if (!text.empty() && !co_await write(text)) break;
    if (!text.empty()) last_write = Clock::now();
    if (out.response || out.is_end) co_return !(out.is_end && frame.is_http_1_0);
    if (has_peer_left() || exchange->is_overflowing()) break;
    if (!text.empty()) continue;
    auto wait = kPeerCheckInterval;
    if (is_stream && shared_->limits.heartbeat.count() > 0)
      wait = std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(
                            shared_->limits.heartbeat - (Clock::now() - last_write)),
                        std::chrono::milliseconds(1), kPeerCheckInterval);
    error_code ec;
    wake_.expires_after(wait);
    co_await wake_.async_wait(token(ec));
  }
  exchange->mark_gone();
  co_return false;
}

// A reply with part of the request unread: nothing more is parsed from this connection. It stays
// open for a moment, because closing with unread bytes would take the reply back.
asio::awaitable<void> Connection::refuse(HttpResponse response,
                                         const std::vector<Header>& headers) {
  const ResponseFrame frame{request_.is_http_1_0, false, request_.method == "HEAD",
                            request_.request_id, headers};
  if (!co_await write(response_text(response, frame))) co_return;
  error_code ec;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  buffer_.clear();
  arm(kLingerTime);
  std::string discarded(kReadBytes, '\0');
  while (!ec && !has_timed_out_)
    co_await socket_.async_read_some(asio::buffer(discarded), token(ec));
  disarm();
}

}  // namespace fathom::server::internal
