// A small blocking HTTP client for tests: sends exactly the bytes it is given.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace fathom::testing {

struct HttpReply {
  int status = 0;                              // 0: closed without a reply
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;                            // chunks joined
};

class HttpClient {
 public:
  explicit HttpClient(int port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool send(std::string_view bytes);  // false: the peer closed
  // One reply. Reads at most until `time` has passed.
  HttpReply read_reply(std::chrono::milliseconds time = std::chrono::seconds(20),
                       bool is_head = false);
  // Bytes until at least `count` came, the end, or the time.
  std::string read_some(size_t count, std::chrono::milliseconds time = std::chrono::seconds(20));
  bool is_closed_within(std::chrono::milliseconds time);  // reads and drops everything
  void reset();                                           // RST instead of FIN
  void shutdown_writing();

 private:
  bool fill(std::chrono::steady_clock::time_point end);
  std::string take_line(std::chrono::steady_clock::time_point end);
  std::string take(size_t count, std::chrono::steady_clock::time_point end);

  int fd_ = -1;
  std::string buffer_;
};

// A whole request with Host and Content-Length.
std::string http_request(std::string_view method, std::string_view path, std::string_view body = "",
                         std::string_view more_headers = "");

}  // namespace fathom::testing
