// The bytes of response heads and chunks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"

namespace fathom::server {

struct ResponseFrame {
  bool is_http_1_0 = false;
  bool keep_alive = true;
  bool is_head_request = false;  // headers as for GET, no body
  std::string request_id;
  std::vector<Header> headers;  // of this request (CORS)
};

// Head and body, with Content-Length.
std::string response_text(const HttpResponse& response, const ResponseFrame& frame);
// The head of an event stream; chunked, or ended by closing for HTTP/1.0.
std::string stream_head_text(const ResponseFrame& frame);
std::string chunk_text(std::string_view bytes);  // `bytes` not empty: an empty chunk ends a body

inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kHeartbeat = ": ping\n\n";

}  // namespace fathom::server
