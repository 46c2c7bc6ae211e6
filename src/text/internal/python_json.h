// JSON as the models saw it in training: Python's json.dumps with ensure_ascii=False (spec
// prompt-encoding §7.4). Keys keep the order of the text, which a parsed Json loses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fathom::text::internal {

// kInvalidArgument when `json` is not one JSON document. A name that appears twice keeps its first
// place and its last value.
Result<std::string> to_python_json(std::string_view json);

// `text`, which is UTF-8, as a JSON string with its quotes.
std::string python_string(std::string_view text);

// A value of an object: as in Python, either a string or something else in Python's JSON.
struct JsonMember {
  std::string name;
  bool is_string = false;
  std::string value;  // the string itself, or Python-style JSON
};
// kInvalidArgument when `json` is not one JSON object.
Result<std::vector<JsonMember>> object_members(std::string_view json);

// The object again: {"name": value, ...}.
std::string join_members(const std::vector<JsonMember>& members);

// The text inside when `json` is one JSON string, else `json` itself.
std::string unwrap_json_string(std::string_view json);

}  // namespace fathom::text::internal
