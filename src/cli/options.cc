#include "cli/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

extern char** environ;

namespace fathom::cli {

namespace {

bool takes(const Option& option, std::string_view command) {
  if (option.commands == "*") return true;
  std::string_view rest = option.commands;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    if (rest.substr(0, space) == command) return true;
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  }
  return false;
}

// The option of this name that the command takes, else one that others take, else null.
const Option* find_option(std::string_view name, std::string_view command) {
  const Option* of_others = nullptr;
  for (const Option& option : all_options()) {
    if (option.name != name) continue;
    if (takes(option, command)) return &option;
    of_others = &option;
  }
  return of_others;
}

// " Did you mean X?" for the nearest candidate, if it is near.
std::string suggestion(std::string_view given, std::span<const std::string_view> candidates) {
  std::string_view best;
  int64_t best_distance = static_cast<int64_t>(given.size()) / 3 + 2;
  for (std::string_view candidate : candidates) {
    const int64_t distance = edit_distance(given, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best.empty() ? std::string() : fmt::format("; did you mean {}?", best);
}

Status unknown_option(std::string_view name, const Command& command) {
  std::vector<std::string_view> names;
  for (const Option& option : all_options())
    if (takes(option, command.name)) names.push_back(option.name);
  if (const Option* of_others = find_option(name, command.name))
    return error(Code::kInvalidArgument, "fathom {} does not take {}; it is for: {}", command.name,
                 name, of_others->commands);
  return error(Code::kInvalidArgument, "unknown option {}{} (fathom {} --help lists them)", name,
               suggestion(name, names), command.name);
}

std::optional<double> to_number(const std::string& text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> to_integer(const std::string& text) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split_at(char separator, std::string_view text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Status check_choice(const Option& option, std::string_view place, const std::string& value) {
  const std::vector<std::string> words = split_at('|', option.value);
  std::string wanted;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool is_number = words[i] == "N";
    const auto number = to_integer(value);
    if (is_number ? number && *number >= option.min && *number <= option.max : words[i] == value)
      return Status::ok();
    if (i > 0) wanted += i + 1 < words.size() ? ", " : " or ";
    wanted += is_number ? fmt::format("{:.0f} to {:.0f}", option.min, option.max) : words[i];
  }
  return error(Code::kInvalidArgument, "{}: wanted {}, found \"{}\"", place, wanted, value);
}

// `place` is the option or variable that the value came from.
Status check_value(const Option& option, std::string_view place, const std::string& value) {
  if (option.kind == Kind::kChoice) return check_choice(option, place, value);
  if (option.kind == Kind::kNumber || option.kind == Kind::kInteger) {
    const bool is_integer = option.kind == Kind::kInteger;
    const auto number = is_integer && !to_integer(value) ? std::nullopt : to_number(value);
    const auto bound = [&](double limit) {
      return is_integer ? fmt::format("{:.0f}", limit) : fmt::format("{}", limit);
    };
    if (!number || !(*number >= option.min && *number <= option.max))
      return error(Code::kInvalidArgument, "{}: wanted {} from {} to {}, found \"{}\"", place,
                   is_integer ? "a whole number" : "a number", bound(option.min), bound(option.max),
                   value);
  }
  if (value.empty() && option.name != "--prompt" && option.name != "--system")
    return error(Code::kInvalidArgument, "{}: the value is empty; wanted {}", place, option.value);
  return Status::ok();
}

}  // namespace

int64_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table for the prefixes of `a`: two before, one before, this one.
  std::vector<int64_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

bool Settings::flag(std::string_view name) const {
  const auto it = values_.find(name);
  return it != values_.end() && it->second.back() == "1";
}

std::optional<std::string> Settings::text(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::nullopt : std::optional(it->second.back());
}

std::string Settings::text_or_standard(std::string_view name) const {
  return text(name).value_or(std::string(find_option(name, "")->standard));
}

std::vector<std::string> Settings::list(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

std::optional<int64_t> Settings::integer(std::string_view name) const {
  const auto value = text(name);
  return value ? to_integer(*value) : std::nullopt;
}

std::optional<double> Settings::number(std::string_view name) const {
  const auto value = text(name);
  return value ? to_number(*value) : std::nullopt;
}

int64_t Settings::integer_or_standard(std::string_view name) const {
  return *to_integer(text_or_standard(name));
}

Result<Settings> parse_settings(const Command& command, std::span<const std::string> arguments,
                                const std::map<std::string, std::string>& environment) {
  Settings settings;
  bool has_ended_options = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (has_ended_options || word.size() < 2 || word[0] != '-') {
      settings.positional_.push_back(word);
      continue;
    }
    if (word == "--") {
      has_ended_options = true;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Option* option = find_option(name, command.name);
    if (!option || !takes(*option, command.name)) return unknown_option(name, command);
    std::string value = "1";
    if (option->kind == Kind::kFlag) {
      if (equals != std::string::npos)
        return error(Code::kInvalidArgument, "{} takes no value", name);
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return error(Code::kInvalidArgument, "{} needs a value: {} {}", name, name, option->value);
    }
    FATHOM_TRY(check_value(*option, name, value));
    settings.values_[option->name].push_back(std::move(value));
  }
  if (static_cast<int64_t>(settings.positional_.size()) > command.positional_max)
    return error(Code::kInvalidArgument,
                 "fathom {}: \"{}\" is one word too many; usage: fathom {} {}", command.name,
                 settings.positional_.back(), command.name, command.arguments);

  for (const auto& [variable, value] : environment) {
    const Option* option = nullptr;
    std::vector<std::string_view> known;
    for (const Option& candidate : all_options()) {
      if (candidate.environment.empty()) continue;
      known.push_back(candidate.environment);
      if (candidate.environment == variable) option = &candidate;
    }
    if (!option)
      return error(Code::kInvalidArgument, "unknown environment variable {}{}", variable,
                   suggestion(variable, known));
    if (!takes(*option, command.name) || settings.values_.contains(option->name)) continue;
    const auto values =
        option->kind == Kind::kList ? split_at(',', value) : std::vector<std::string>{value};
    if (option->kind == Kind::kFlag && value != "0" && value != "1")
      return error(Code::kInvalidArgument, "{}: wanted 1 or 0, found \"{}\"", variable, value);
    for (const std::string& one : values) FATHOM_TRY(check_value(*option, variable, one));
    if (!values.empty()) settings.values_[option->name] = values;
  }
  return settings;
}

Result<const Command*> find_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) {
    if (command.name == name) return &command;
    names.push_back(command.name);
  }
  return error(Code::kInvalidArgument, "unknown command {}{} (fathom --help lists them)", name,
               suggestion(name, names));
}

std::map<std::string, std::string> fathom_environment() {
  // Set by ./dev for the tests, which start this program.
  constexpr std::array<std::string_view, 3> kOfTests = {"FATHOM_PROGRAM", "FATHOM_BUILD_DIR",
                                                        "FATHOM_TEST_DATA"};
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    constexpr std::string_view kPrefix = "FATHOM_";
    const size_t equals = text.find('=');
    if (text.substr(0, kPrefix.size()) != kPrefix || equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (std::find(kOfTests.begin(), kOfTests.end(), name) == kOfTests.end())
      variables[std::string(name)] = text.substr(equals + 1);
  }
  return variables;
}

std::string help_text() {
  std::string text =
      "fathom: runs DeepSeek-V4.1-Flash on your own machine; every number checked\n\n"
      "usage: fathom COMMAND [OPTIONS]\n\n";
  for (const Command& command : all_commands())
    text += fmt::format("  {:<9} {}\n", command.name, command.help);
  text +=
      "\n  fathom COMMAND --help   the options of a command\n"
      "  fathom --version        build, instruction set, numeric policies\n\n"
      "Most options can be set by an environment variable too; the command line wins.\n"
      "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n";
  return text;
}

std::string help_text(const Command& command) {
  std::string text = fmt::format("fathom {}: {}\n\nusage: fathom {} {}\n\n", command.name,
                                 command.help, command.name, command.arguments);
  for (const Option& option : all_options()) {
    if (!takes(option, command.name)) continue;
    std::string left =
        fmt::format("  {}{}{}", option.name, option.value.empty() ? "" : " ", option.value);
    // A long left side has its line for itself.
    constexpr size_t kLeftWidth = 34;
    if (left.size() + 2 > kLeftWidth) text += std::exchange(left, {}) + "\n";
    text += fmt::format("{:<{}}{}", left, kLeftWidth, option.help);
    if (!option.standard.empty()) text += fmt::format(" [{}]", option.standard);
    if (!option.environment.empty()) text += fmt::format(" ({})", option.environment);
    text += '\n';
  }
  return text;
}

}  // namespace fathom::cli
