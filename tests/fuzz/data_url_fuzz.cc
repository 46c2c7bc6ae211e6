// A picture's address from outside: bytes within the limit, or why there are none.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/data_url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kBytesMax = 1000;
  const std::string_view url(reinterpret_cast<const char*>(data), size);
  const auto bytes = fathom::server::decode_data_url(url, kBytesMax);
  if (bytes)
    FATHOM_CHECK(!bytes->empty() && static_cast<int64_t>(bytes->size()) <= kBytesMax, "{} bytes",
                 bytes->size());
  return 0;
}
