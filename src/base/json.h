// The one way into JSON: parses outside bytes with bounds that nlohmann-json alone does not hold.
// Values are nlohmann::json after that; parsing never throws.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fathom {

using Json = nlohmann::json;

struct JsonLimits {
  int64_t bytes_max = 8 << 20;
  int depth_max = 64;
  int64_t values_max = 2'000'000;  // keys and values together; bounds memory at about 100 B each
  // A name that appears twice in one object is an error. Requests are laxer (HTTP API §2.2): with
  // last_duplicate_wins only the names listed as unique are.
  bool last_duplicate_wins = false;
  std::vector<std::string_view> unique_names = {};
};

// Errors (kInvalidArgument) name the byte offset and what was found; `text` must be UTF-8.
// A lone number, string or literal is a document, trailing bytes are not.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace fathom
