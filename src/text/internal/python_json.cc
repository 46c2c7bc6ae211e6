#include "text/internal/python_json.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "base/json.h"

namespace fathom::text::internal {

namespace {

JsonLimits limits() {
  return {.last_duplicate_wins = true};
}

// Python's repr of a float: shortest digits, exponent form below 1e-4 and from 1e16 on.
std::string python_float(double value) {
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view scientific(buffer, end.ptr - buffer);
  const size_t e = scientific.find('e');
  const std::string_view exponent_text = scientific.substr(e + (scientific[e + 1] == '+' ? 2 : 1));
  int exponent = 0;
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  char fixed[64];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed);
  std::string text(fixed, fixed_end.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string python_number(std::string_view text) {
  if (text.find_first_of(".eE") == std::string_view::npos)
    return std::string(text == "-0" ? "0" : text);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return python_float(value);
}

// Walks a text that parse_json has accepted, so its form and depth need no checks here.
class Transcriber {
 public:
  explicit Transcriber(std::string_view json) : json_(json) {}

  std::string value() {
    skip_space();
    if (json_[at_] == '"') return python_string(string());
    if (json_[at_] == '{') return join_members(object());
    if (json_[at_] == '[') return array();
    const std::string_view word = json_.substr(at_, json_.find_first_of(",]} \t\r\n", at_) - at_);
    at_ += word.size();
    const bool is_number = word[0] == '-' || (word[0] >= '0' && word[0] <= '9');
    return is_number ? python_number(word) : std::string(word);  // true, false, null
  }

  std::vector<JsonMember> object() {
    std::vector<JsonMember> members;
    std::unordered_map<std::string, size_t> place_of;
    for (bool more = open('}'); more; more = next('}')) {
      JsonMember member;
      member.name = string();
      skip_space();
      ++at_;  // the colon
      skip_space();
      member.is_string = json_[at_] == '"';
      member.value = member.is_string ? string() : value();
      const auto [place, is_new] = place_of.try_emplace(member.name, members.size());
      if (is_new) members.emplace_back();
      members[place->second] = std::move(member);
    }
    return members;
  }

  std::string string() {
    const size_t begin = at_;
    for (++at_; json_[at_] != '"'; ++at_)
      if (json_[at_] == '\\') ++at_;
    ++at_;
    const auto parsed = parse_json(json_.substr(begin, at_ - begin));
    return parsed->get<std::string>();
  }

  char peek() {
    skip_space();
    return json_[at_];
  }

 private:
  std::string array() {
    std::string text = "[";
    for (bool more = open(']'); more; more = next(']'))
      text += (text.size() > 1 ? ", " : "") + value();
    return text + "]";
  }

  // Behind the opening bracket, and behind each value: is there another value?
  bool open(char close) {
    skip_space();
    ++at_;
    skip_space();
    return step_over(close);
  }
  bool next(char close) {
    skip_space();
    if (json_[at_] == ',') ++at_;
    skip_space();
    return step_over(close);
  }
  bool step_over(char close) {
    if (json_[at_] != close) return true;
    ++at_;
    return false;
  }

  void skip_space() { at_ = std::min(json_.find_first_not_of(" \t\r\n", at_), json_.size()); }

  std::string_view json_;
  size_t at_ = 0;
};

}  // namespace

std::string python_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string join_members(const std::vector<JsonMember>& members) {
  std::string text = "{";
  for (const JsonMember& member : members) {
    if (text.size() > 1) text += ", ";
    text += python_string(member.name) + ": ";
    text += member.is_string ? python_string(member.value) : member.value;
  }
  return text + "}";
}

Result<std::string> to_python_json(std::string_view json) {
  FATHOM_TRY(parse_json(json, limits()).status());
  return Transcriber(json).value();
}

Result<std::vector<JsonMember>> object_members(std::string_view json) {
  FATHOM_TRY(parse_json(json, limits()).status());
  Transcriber transcriber(json);
  if (transcriber.peek() != '{') return error(Code::kInvalidArgument, "not a JSON object");
  return transcriber.object();
}

std::string unwrap_json_string(std::string_view json) {
  const auto parsed = parse_json(json, limits());
  if (parsed && parsed->is_string()) return parsed->get<std::string>();
  return std::string(json);
}

}  // namespace fathom::text::internal
