// A request's first bytes from outside: refused, incomplete, or a head within its limits.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/http_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom::server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const HeadCheck check = check_head(bytes, {});
  FATHOM_CHECK(check.head_bytes <= static_cast<int64_t>(size), "a head of {} of {} bytes",
               check.head_bytes, size);
  if (check.head_bytes > 0) {
    const std::string_view head = bytes.substr(0, static_cast<size_t>(check.head_bytes));
    FATHOM_CHECK(head.substr(head.size() - 4) == "\r\n\r\n", "the head ends elsewhere");
    FATHOM_CHECK(!check.error, "complete and refused");
    // Every shorter piece is incomplete: nothing is decided before the last byte.
    FATHOM_CHECK(check_head(head.substr(0, head.size() - 1), {}).head_bytes == 0, "early end");
  }
  path_of_target(bytes);
  return 0;
}
