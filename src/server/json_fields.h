// Reads the fields of a request's JSON object by name and type. The first thing that is wrong is
// kept as an ApiError that names its path; after it every getter gives nothing, so that a parser
// reads as a list of fields and asks once at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/api_error.h"

namespace fathom::server {

class JsonFields {
 public:
  // `object` and `error` outlive it. `path` is empty for the body itself.
  JsonFields(const Json& object, std::string path, std::optional<ApiError>* error)
      : object_(object), path_(std::move(path)), error_(error) {}

  // null and absence are the same: no value.
  const Json* find(const char* name) const;
  std::optional<bool> boolean(const char* name);
  // Whole numbers, also written as 1.0.
  std::optional<int64_t> integer(const char* name, int64_t min, int64_t max);
  std::optional<double> number(const char* name, double min, double max);
  std::optional<std::string> string(const char* name);
  const Json* object(const char* name);
  const Json* array(const char* name);

  std::string path_of(const char* name) const;
  bool has_failed() const { return error_->has_value(); }
  void fail(ApiError error);

 private:
  const Json* of_type(const char* name, bool (Json::*is_type)() const, const char* wanted);

  const Json& object_;
  const std::string path_;
  std::optional<ApiError>* error_;
};

// A whole number in `value`, also written as 1.0; nothing when it is none or too large.
std::optional<int64_t> whole_number(const Json& value);

// For messages: the value, at most 60 bytes of it.
std::string shown(const Json& value);
// The text, at most 60 bytes of it, cut at a character.
std::string shown_text(std::string_view text);

}  // namespace fathom::server
