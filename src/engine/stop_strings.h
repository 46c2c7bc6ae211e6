// Finds stop strings in a growing text. Text that could still become a stop string is held back, so
// a match that spans tokens is never shown in part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

class StopMatcher {
 public:
  // No string may be empty. `text` fed later and the strings are UTF-8 whole, so that what is
  // emitted is too.
  explicit StopMatcher(std::vector<std::string> strings);

  // Takes more text and returns what may be shown. After a match nothing more is.
  std::string feed(std::string_view text);
  // The end of the answer: what was held back, in the hope of a match, is text after all.
  std::string finish();

  const std::optional<std::string>& matched() const { return matched_; }
  int64_t held_bytes() const { return static_cast<int64_t>(held_.size()); }

 private:
  size_t possible_start(std::string_view text) const;

  const std::vector<std::string> strings_;
  std::string held_;  // a proper prefix of some stop string, or empty
  std::optional<std::string> matched_;
};

}  // namespace fathom
