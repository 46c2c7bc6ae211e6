#include "model/deepseek_v41/config_fields.h"

#include <cmath>

namespace fathom::v41 {

namespace {

constexpr size_t kFoundMax = 80;  // characters of a value that a message repeats

}  // namespace

ConfigFields::ConfigFields(const Json& object, std::string place)
    : object_(object), place_(std::move(place)) {}

const Json* ConfigFields::take(const std::string& name) {
  known_.insert(name);
  if (!status_.is_ok()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

void ConfigFields::fail(const std::string& name, const std::string& wanted, const Json& found,
                        Code code) {
  std::string text = found.dump();
  if (text.size() > kFoundMax) text = text.substr(0, kFoundMax) + "...";
  if (status_.is_ok())
    status_ = error(code, "{}{}: wanted {}, found {}", place_, name, wanted, text);
}

std::optional<int64_t> ConfigFields::checked_whole(const std::string& name, const Json& value,
                                                   int64_t min, int64_t max) {
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()});
  if (fits && value.get<int64_t>() >= min && value.get<int64_t>() <= max)
    return value.get<int64_t>();
  fail(name, fmt::format("a whole number from {} to {}", min, max), value);
  return std::nullopt;
}

void ConfigFields::real(const std::string& name, double min, double max, double* out) {
  const Json* value = take(name);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= min && number <= max))
    return fail(name, fmt::format("a number from {} to {}", min, max), *value);
  *out = number;
}

void ConfigFields::flag(const std::string& name, bool* out) {
  const Json* value = take(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(name, "true or false", *value);
  *out = value->get<bool>();
}

void ConfigFields::text(const std::string& name, std::string* out) {
  const Json* value = take(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fail(name, "a text", *value);
  *out = value->get<std::string>();
}

const Json* ConfigFields::object(const std::string& name) {
  const Json* value = take(name);
  if (value == nullptr || value->is_null()) return nullptr;
  if (value->is_object()) return value;
  fail(name, "an object", *value);
  return nullptr;
}

void ConfigFields::only(const std::string& name, const Json& wanted) {
  const Json* value = take(name);
  if (value != nullptr && *value != wanted)
    fail(name, wanted.dump() + " (Fathom runs no other)", *value, Code::kUnsupported);
}

void ConfigFields::not_used(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

Status ConfigFields::finish(std::vector<std::string>* notices) const {
  if (!status_.is_ok()) return status_;
  for (const auto& [name, value] : object_.items())
    if (!known_.contains(name))
      notices->push_back(fmt::format("config.json: field {}{} is not known and was ignored", place_,
                                     name.substr(0, kFoundMax)));
  return {};
}

}  // namespace fathom::v41
