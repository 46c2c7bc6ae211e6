// Reads the fields of one JSON object of config.json: types, ranges, and which were not known.
// Private to config.cc and its neighbours.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace fathom::v41 {

// Each reader leaves its target alone when the field is absent, so targets hold the defaults. The
// first error is kept and the rest of the reads do nothing; finish() returns it.
class ConfigFields {
 public:
  // `object` must outlive this; `place` is "" or "text_config." and so on, put before each name.
  ConfigFields(const Json& object, std::string place);

  bool has(const std::string& name) const { return object_.contains(name); }

  template <typename Int>
  void whole(const std::string& name, int64_t min, int64_t max, Int* out) {
    if (const Json* value = take(name))
      if (std::optional<int64_t> number = checked_whole(name, *value, min, max))
        *out = static_cast<Int>(*number);
  }
  // Finite and in [min, max].
  void real(const std::string& name, double min, double max, double* out);
  void flag(const std::string& name, bool* out);
  void text(const std::string& name, std::string* out);
  // A list of whole numbers; `out` stays empty when the field is absent or null.
  template <typename Int>
  void list(const std::string& name, int64_t count_max, int64_t min, int64_t max,
            std::optional<std::vector<Int>>* out) {
    const Json* value = take(name);
    if (value == nullptr || value->is_null()) return;
    if (!value->is_array() || static_cast<int64_t>(value->size()) > count_max)
      return fail(name, fmt::format("a list of at most {} whole numbers", count_max), *value);
    out->emplace();
    for (const Json& item : *value) {
      const std::optional<int64_t> number = checked_whole(name, item, min, max);
      if (!number) return;
      (*out)->push_back(static_cast<Int>(*number));
    }
  }
  // The object `name`, or null when it is absent or null.
  const Json* object(const std::string& name);
  // Absent or exactly `value`: everything else is a model that Fathom does not run.
  void only(const std::string& name, const Json& value);
  // Known and without influence on what Fathom computes (listed in docs/formats/checkpoint.md).
  void not_used(std::initializer_list<const char*> names);

  // The first error, if any; otherwise one notice for each field that nobody asked for.
  Status finish(std::vector<std::string>* notices) const;

 private:
  const Json* take(const std::string& name);  // null when absent or after an error
  std::optional<int64_t> checked_whole(const std::string& name, const Json& value, int64_t min,
                                       int64_t max);
  void fail(const std::string& name, const std::string& wanted, const Json& found,
            Code code = Code::kDataLoss);

  const Json& object_;
  const std::string place_;
  std::set<std::string> known_;
  Status status_;
};

}  // namespace fathom::v41
