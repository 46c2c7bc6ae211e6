#include "server/response_text.h"

#include <fmt/format.h>

namespace fathom::server {

namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

std::string common_head(int status, const ResponseFrame& frame) {
  std::string head = fmt::format(
      "HTTP/1.{} {} {}\r\nX-Request-Id: {}\r\n"
      "X-Content-Type-Options: nosniff\r\n",
      frame.is_http_1_0 ? 0 : 1, status, reason(status), frame.request_id);
  for (const Header& header : frame.headers)
    head += fmt::format("{}: {}\r\n", header.first, header.second);
  if (!frame.keep_alive) head += "Connection: close\r\n";
  return head;
}

}  // namespace

std::string response_text(const HttpResponse& response, const ResponseFrame& frame) {
  std::string text = common_head(response.status, frame);
  for (const Header& header : response.headers)
    text += fmt::format("{}: {}\r\n", header.first, header.second);
  if (response.status == 204) return text + "\r\n";
  text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n\r\n", response.content_type,
                      response.body.size());
  if (!frame.is_head_request) text += response.body;
  return text;
}

std::string stream_head_text(const ResponseFrame& frame) {
  std::string text = common_head(200, frame);
  text +=
      "Content-Type: text/event-stream; charset=utf-8\r\n"
      "Cache-Control: no-cache, no-transform\r\n"
      "X-Accel-Buffering: no\r\n";
  if (!frame.is_http_1_0) text += "Transfer-Encoding: chunked\r\n";
  return text + "\r\n";
}

std::string chunk_text(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace fathom::server
