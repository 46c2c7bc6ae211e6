// Tool arguments, schemas and response formats from requests, rewritten as Python would print them.
// What is JSON is rewritten without a crash, and what was rewritten once stays as it is.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/internal/python_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom::text::internal;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  unwrap_json_string(bytes);
  const auto once = to_python_json(bytes);
  if (!once) return 0;
  const auto twice = to_python_json(*once);
  FATHOM_CHECK(twice.is_ok(), "{} is not JSON: {}", *once, twice.status().message());
  FATHOM_CHECK(*twice == *once, "{} became {}", *once, *twice);
  const auto members = object_members(bytes);
  if (members) FATHOM_CHECK(join_members(*members) == *once, "{} by its members", *once);
  return 0;
}
