// Any bytes as a safetensors file. What is accepted must cover the file exactly.
#include "base/check.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto entries = fathom::parse_safetensors_header(bytes, static_cast<int64_t>(size));
  if (!entries) return 0;
  int64_t payload = 0;
  for (const fathom::TensorEntry& entry : *entries) {
    FATHOM_CHECK(entry.offset >= 8 && entry.bytes >= 0, "tensor at {}", entry.offset);
    FATHOM_CHECK(entry.offset + entry.bytes <= static_cast<int64_t>(size), "past the end");
    payload += entry.bytes;
  }
  FATHOM_CHECK(payload < static_cast<int64_t>(size), "{} payload bytes of {}", payload, size);
  return 0;
}
