#include "tests/server/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace fathom::testing {

using Clock = std::chrono::steady_clock;

HttpClient::HttpClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  FATHOM_CHECK(result == 0, "connect to port {} failed", port);
}

HttpClient::~HttpClient() {
  ::close(fd_);
}

void HttpClient::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd_);
  fd_ = -1;
}

void HttpClient::shutdown_writing() {
  ::shutdown(fd_, SHUT_WR);
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// More bytes into the buffer; false at the end or when the time is over.
bool HttpClient::fill(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  pollfd fd{fd_, POLLIN, 0};
  if (::poll(&fd, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) <= 0) return false;
  char bytes[65536];
  const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::string HttpClient::take_line(Clock::time_point end) {
  size_t at;
  while ((at = buffer_.find("\r\n")) == std::string::npos)
    if (!fill(end)) return {};
  std::string line = buffer_.substr(0, at);
  buffer_.erase(0, at + 2);
  return line;
}

std::string HttpClient::take(size_t count, Clock::time_point end) {
  while (buffer_.size() < count && fill(end)) {
  }
  std::string bytes = buffer_.substr(0, count);
  buffer_.erase(0, bytes.size());
  return bytes;
}

HttpReply HttpClient::read_reply(std::chrono::milliseconds time, bool is_head) {
  const auto end = Clock::now() + time;
  HttpReply reply;
  const std::string status_line = take_line(end);
  if (status_line.size() < 12) return reply;
  reply.status = std::atoi(status_line.c_str() + 9);
  for (std::string line = take_line(end); !line.empty(); line = take_line(end)) {
    const size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    reply.headers[name] = line.substr(colon + 2);
  }
  if (reply.status < 200) return reply;
  if (is_head) return reply;
  if (reply.headers.contains("content-length")) {
    reply.body = take(std::stoul(reply.headers["content-length"]), end);
  } else if (reply.headers.contains("transfer-encoding")) {
    while (true) {
      const std::string size = take_line(end);
      const size_t count = size.empty() ? 0 : std::stoul(size, nullptr, 16);
      reply.body += take(count, end);
      take_line(end);
      if (count == 0) break;
    }
  } else if (reply.status != 204) {
    while (fill(end)) {
    }
    reply.body = std::exchange(buffer_, {});
  }
  return reply;
}

std::string HttpClient::read_some(size_t count, std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (buffer_.size() < count && fill(end)) {
  }
  return std::exchange(buffer_, {});
}

bool HttpClient::is_closed_within(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (fill(end)) buffer_.clear();
  return Clock::now() < end;
}

std::string http_request(std::string_view method, std::string_view path, std::string_view body,
                         std::string_view more_headers) {
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}", method, path, more_headers);
  if (method == "POST")
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  return text + "\r\n" + std::string(body);
}

}  // namespace fathom::testing
