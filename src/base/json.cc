#include "base/json.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fathom {

namespace {

// Builds the value while it enforces depth, count and unique names. Returning false stops the
// parser at that event, so a hostile document costs no more than its prefix.
class BoundedSax : public nlohmann::json_sax<Json> {
 public:
  explicit BoundedSax(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(v); }
  bool number_unsigned(number_unsigned_t v) override { return put(v); }
  bool number_float(number_float_t v, const string_t&) override { return put(v); }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return fail("binary value"); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!count()) return false;
    Json& object = *stack_.back();
    if (object.contains(name) && must_be_unique(name))
      return fail(fmt::format("name \"{}\" appears twice", name.substr(0, 80)));
    pending_ = &object[name];
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    if (!error_.empty()) return false;
    std::string what = e.what();
    // Without the library's own name and number for it, "[json.exception...] ".
    const size_t colon = what.find("syntax error");
    const size_t bracket = what.find("] ");
    if (colon != std::string::npos)
      what = what.substr(colon);
    else if (bracket != std::string::npos)
      what = what.substr(bracket + 2);
    // The library quotes what it read last, which may be megabytes of a caller's own text.
    if (what.size() > 200) what = what.substr(0, 200) + "...";
    return fail(fmt::format("at byte {}: {}", position, what));
  }

  const std::string& error() const { return error_; }
  Json take() { return std::move(root_); }

 private:
  bool fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  bool must_be_unique(const std::string& name) const {
    if (!limits_.last_duplicate_wins) return true;
    return std::find(limits_.unique_names.begin(), limits_.unique_names.end(), name) !=
           limits_.unique_names.end();
  }
  bool count() {
    return ++values_ <= limits_.values_max ||
           fail(fmt::format("more than {} values", limits_.values_max));
  }
  Json* place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *pending_ = std::move(value);
    return pending_;
  }
  bool put(Json value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (!count()) return false;
    if (static_cast<int>(stack_.size()) >= limits_.depth_max)
      return fail(fmt::format("nested deeper than {}", limits_.depth_max));
    stack_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Json*> stack_;  // open containers; a parent does not grow while a child is open
  Json* pending_ = nullptr;   // where the value after the last key goes
  int64_t values_ = 0;
  std::string error_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.bytes_max)
    return error(Code::kInvalidArgument, "JSON of {} bytes, at most {} are read", text.size(),
                 limits.bytes_max);
  BoundedSax sax(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &sax))
    return error(Code::kInvalidArgument, "not valid JSON: {}", sax.error());
  return sax.take();
}

}  // namespace fathom
