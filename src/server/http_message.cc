#include "server/http_message.h"

#include <algorithm>

namespace fathom::server {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

const std::string* HttpRequest::header(std::string_view name) const {
  for (const Header& h : headers)
    if (equals_ignoring_case(h.first, name)) return &h.second;
  return nullptr;
}

int64_t HttpRequest::header_count(std::string_view name) const {
  return std::count_if(headers.begin(), headers.end(),
                       [&](const Header& h) { return equals_ignoring_case(h.first, name); });
}

}  // namespace fathom::server
