#include "server/http_server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "server/internal/connection_loop.h"

namespace fathom::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using internal::Connection;

namespace {
constexpr size_t kReservedMax = 2;  // connections over the limits, for health checks

std::optional<asio::ip::address> address_of(const std::string& host) {
  error_code ec;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  return ec ? std::nullopt : std::optional(address);
}

}  // namespace

// Connections are counted and touched on the network thread only.
struct HttpServer::Impl {
  Impl(const ListenOptions& options, RequestHandler& handler)
      : acceptor(io),
        shared(std::make_shared<internal::ConnectionShared>(
            internal::ConnectionShared{handler, options.limits})) {}

  asio::awaitable<void> accept_loop();
  asio::awaitable<void> pause_accepting();
  void admit(tcp::socket socket);
  asio::awaitable<void> run_connection(std::shared_ptr<Connection> connection, std::string peer,
                                       bool is_reserved);
  void evict_idle_reserved();
  void close_all();

  asio::io_context io{1};
  tcp::acceptor acceptor;
  std::shared_ptr<internal::ConnectionShared> shared;
  std::list<std::weak_ptr<Connection>> connections;
  std::list<std::weak_ptr<Connection>> reserved;
  int64_t connection_count = 0;  // without reserved ones
  std::map<std::string, int64_t> peer_counts;
  int port = 0;
  std::thread thread;
};

Status check_listen_address(const std::string& host) {
  if (address_of(host)) return Status::ok();
  return error(Code::kInvalidArgument,
               "--host: wanted an IPv4 or IPv6 address or localhost, found \"{}\"", host);
}

bool is_loopback_address(const std::string& host) {
  const auto address = address_of(host);
  return address && address->is_loopback();
}

asio::awaitable<void> HttpServer::Impl::accept_loop() {
  while (acceptor.is_open()) {
    error_code ec;
    tcp::socket socket =
        co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, ec));
    if (!acceptor.is_open()) co_return;  // a client accepted meanwhile would outlive close_all
    if (!ec) {
      admit(std::move(socket));
    } else {
      log(LogLevel::kWarning, "accept: {}", ec.message());
      co_await pause_accepting();  // out of descriptors: waiting is all that helps
    }
  }
}

asio::awaitable<void> HttpServer::Impl::pause_accepting() {
  asio::steady_timer timer(io, std::chrono::milliseconds(100));
  error_code ec;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
}

void HttpServer::Impl::admit(tcp::socket socket) {
  error_code ec;
  const auto endpoint = socket.remote_endpoint(ec);
  if (ec) return;  // gone already
  const std::string peer = endpoint.address().to_string();
  const auto count = peer_counts.find(peer);
  const bool is_reserved =
      connection_count >= shared->limits.connections_max ||
      (count != peer_counts.end() && count->second >= shared->limits.connections_per_peer_max);
  std::erase_if(reserved, [](const auto& r) { return r.expired(); });
  if (is_reserved && reserved.size() >= kReservedMax) evict_idle_reserved();
  if (is_reserved && reserved.size() >= kReservedMax) return;  // closed by the socket's destructor

  const auto connection = std::make_shared<Connection>(std::move(socket), shared, is_reserved);
  (is_reserved ? reserved : connections).push_back(connection);
  if (!is_reserved) {
    ++connection_count;
    ++peer_counts[peer];
  }
  asio::co_spawn(io, run_connection(connection, peer, is_reserved), asio::detached);
}

asio::awaitable<void> HttpServer::Impl::run_connection(std::shared_ptr<Connection> connection,
                                                       std::string peer, bool is_reserved) {
  co_await connection->run();
  auto& list = is_reserved ? reserved : connections;
  std::erase_if(list, [&](const auto& c) { return c.expired() || c.lock() == connection; });
  if (is_reserved) co_return;
  --connection_count;
  if (--peer_counts[peer] == 0) peer_counts.erase(peer);
}

void HttpServer::Impl::evict_idle_reserved() {
  const auto idle = std::find_if(reserved.begin(), reserved.end(), [](const auto& r) {
    const auto connection = r.lock();
    return connection && connection->is_idle();
  });
  if (idle == reserved.end()) return;
  idle->lock()->close();
  reserved.erase(idle);
}

void HttpServer::Impl::close_all() {
  for (auto* list : {&connections, &reserved})
    for (const auto& weak : *list)
      if (const auto connection = weak.lock()) connection->close();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const ListenOptions& options,
                                                      RequestHandler& handler) {
  FATHOM_TRY(check_listen_address(options.host));
  auto impl = std::make_unique<Impl>(options, handler);
  error_code ec;
  const tcp::endpoint endpoint(*address_of(options.host), static_cast<uint16_t>(options.port));
  impl->acceptor.open(endpoint.protocol(), ec);
  if (!ec) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) impl->acceptor.bind(endpoint, ec);
  if (!ec) impl->acceptor.listen(1024, ec);
  if (!ec) impl->port = impl->acceptor.local_endpoint(ec).port();
  if (ec)
    return error(Code::kUnavailable, "cannot listen on {} port {}: {}", options.host, options.port,
                 ec.message());
  asio::co_spawn(impl->io, impl->accept_loop(), asio::detached);
  impl->thread = std::thread([raw = impl.get()] { raw->io.run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  asio::post(impl_->io, [this] {
    error_code ignored;
    impl_->acceptor.close(ignored);
    impl_->close_all();
  });
  impl_->thread.join();  // run() ends when the last coroutine has
}

int HttpServer::port() const {
  return impl_->port;
}

}  // namespace fathom::server
