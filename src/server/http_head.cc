#include "server/http_head.h"

#include <algorithm>
#include <utility>

namespace fathom::server {

namespace {

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
}

std::optional<HeadError> bad(std::string message) {
  return HeadError{400, std::move(message)};
}

std::optional<HeadError> check_request_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == 0 || first == std::string_view::npos || first == last)
    return bad("the request line is not METHOD TARGET VERSION");
  if (!std::all_of(line.begin(), line.begin() + static_cast<int64_t>(first), is_token_char))
    return bad("the method is not a token");
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.empty() || std::any_of(target.begin(), target.end(),
                                    [](char c) { return is_control(c) || c == ' ' || c == '\t'; }))
    return bad("the request target is empty or has spaces or control characters");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return bad("only HTTP/1.1 and HTTP/1.0 are spoken");
  return std::nullopt;
}

std::optional<HeadError> check_header_line(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t')
    return bad("a header line is continued on the next");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0)
    return bad("a header line has no name or no colon");
  if (!std::all_of(line.begin(), line.begin() + static_cast<int64_t>(colon), is_token_char))
    return bad("a header name has spaces or characters that are not allowed in one");
  return std::nullopt;
}

}  // namespace

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

HeadCheck check_head(std::string_view bytes, const HeadLimits& limits) {
  size_t begin = 0;
  for (int64_t line_index = 0;; ++line_index) {
    const bool is_request_line = line_index == 0;
    const size_t end = bytes.find('\n', begin);
    const size_t line_bytes = (end == std::string_view::npos ? bytes.size() : end) - begin;
    if (is_request_line && static_cast<int64_t>(line_bytes) > limits.request_line_bytes_max)
      return {0, HeadError{414, "the request line is longer than " +
                                    std::to_string(limits.request_line_bytes_max) + " bytes"}};
    if (static_cast<int64_t>(begin + line_bytes) > limits.head_bytes_max)
      return {0, HeadError{431, "the headers are longer than " +
                                    std::to_string(limits.head_bytes_max) + " bytes"}};
    const std::string_view received = bytes.substr(begin, line_bytes);
    // A carriage return may only be the last byte so far, and must be the last of the line.
    const std::string_view before_end =
        received.substr(0, received.empty() ? 0 : received.size() - 1);
    if (std::any_of(before_end.begin(), before_end.end(), is_control))
      return {0, bad("the head has a control character")};
    if (end == std::string_view::npos) return {0, std::nullopt};
    if (received.empty() || received.back() != '\r') return {0, bad("a line does not end in CRLF")};
    const std::string_view line = before_end;
    begin = end + 1;
    if (line.empty() && !is_request_line) return {static_cast<int64_t>(begin), std::nullopt};
    if (line_index > limits.header_count_max)
      return {0, HeadError{431, "there are more than " + std::to_string(limits.header_count_max) +
                                    " headers"}};
    if (auto error = is_request_line ? check_request_line(line) : check_header_line(line))
      return {0, std::move(error)};
  }
}

BodyPlanOrError plan_body(const HttpRequest& head) {
  const int64_t lengths = head.header_count("Content-Length");
  const int64_t encodings = head.header_count("Transfer-Encoding");
  const int64_t hosts = head.header_count("Host");
  if (hosts > 1 || (hosts == 0 && !head.is_http_1_0))
    return {{}, bad("wanted exactly one Host header, found " + std::to_string(hosts))};
  if (lengths + encodings > 1)
    return {{}, bad("more than one Content-Length or Transfer-Encoding header")};
  if (encodings == 1) {
    if (head.is_http_1_0 || !equals_ignoring_case(*head.header("Transfer-Encoding"), "chunked"))
      return {{}, bad("the only Transfer-Encoding is chunked")};
    return {{true, 0}, std::nullopt};
  }
  if (lengths == 0) return {};
  const std::string& digits = *head.header("Content-Length");
  constexpr size_t kDigitsMax = 15;  // below 2^53
  if (digits.empty() || digits.size() > kDigitsMax ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {{}, bad("Content-Length is not a number of bytes")};
  return {{false, std::stoll(digits)}, std::nullopt};
}

std::string path_of_target(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"})
    if (target.size() >= scheme.size() &&
        equals_ignoring_case(target.substr(0, scheme.size()), scheme)) {
      const size_t slash = target.find('/', scheme.size());
      target = slash == std::string_view::npos ? "/" : target.substr(slash);
      break;
    }
  if (target.empty() || target.front() != '/') return {};
  return std::string(target.substr(0, target.find_first_of("?#")));
}

}  // namespace fathom::server
