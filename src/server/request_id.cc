#include "server/request_id.h"

#include <sys/random.h>

#include <algorithm>

#include "base/check.h"

namespace fathom::server {

uint64_t random_u64() {
  uint64_t value = 0;
  const ssize_t got = getrandom(&value, sizeof value, 0);
  FATHOM_CHECK(got == sizeof value, "getrandom gave {} bytes", got);
  return value;
}

std::string random_text(int64_t length) {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string text;
  while (static_cast<int64_t>(text.size()) < length) {
    // 10 letters of a 64-bit value: 62^10 is far below 2^64, so the letters are all but even.
    uint64_t bits = random_u64();
    for (int i = 0; i < 10 && static_cast<int64_t>(text.size()) < length; ++i) {
      text += kLetters[bits % kLetters.size()];
      bits /= kLetters.size();
    }
  }
  return text;
}

std::string make_request_id() {
  return "req_" + random_text(20);
}

bool is_harmless_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace fathom::server
