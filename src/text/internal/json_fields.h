// Small readers of JSON values that keep error messages short.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace fathom::text::internal {

// `text` in quotes, cut to a line.
std::string in_quotes(std::string_view text);
// The value as JSON, cut to a line.
std::string shown(const Json& value);

// `object[name]`, or null when it is not there.
const Json& member(const Json& object, const char* name);
bool is_string(const Json& value, std::string_view wanted);
// Not null, false, 0 or "".
bool is_set(const Json& value);
std::optional<int64_t> integer(const Json& value);

}  // namespace fathom::text::internal
