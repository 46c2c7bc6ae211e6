#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fathom {

StopMatcher::StopMatcher(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& s : strings_) FATHOM_CHECK(!s.empty(), "an empty stop string");
}

// First position from which the rest of `text` is a proper prefix of a stop string.
size_t StopMatcher::possible_start(std::string_view text) const {
  size_t first = text.size();
  for (const std::string& s : strings_) {
    const size_t longest = std::min(text.size(), s.size() - 1);
    for (size_t length = longest; length > 0; --length)
      if (text.substr(text.size() - length) == std::string_view(s).substr(0, length)) {
        first = std::min(first, text.size() - length);
        break;
      }
  }
  return first;
}

std::string StopMatcher::feed(std::string_view text) {
  if (matched_) return {};
  if (strings_.empty()) return std::string(text);
  held_ += text;
  size_t match = std::string::npos;
  for (const std::string& s : strings_) {
    const size_t at = held_.find(s);
    if (at >= match) continue;
    match = at;
    matched_ = s;
  }
  const size_t shown = matched_ ? match : possible_start(held_);
  std::string out = held_.substr(0, shown);
  held_ = matched_ ? std::string() : held_.substr(shown);
  return out;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

}  // namespace fathom
