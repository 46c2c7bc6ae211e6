// One table of everything that can be set: each option with its environment variable, the commands
// that take it, and its help. The parser knows nothing that is not in the table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fathom::cli {

enum class Kind {
  kFlag,    // no value; in the environment 1 or 0
  kText,    // the last one given counts
  kList,    // may be given several times; in the environment separated by commas
  kNumber,  // a decimal number within [min, max]
  kInteger,
  kChoice,  // one of the words of `value`; the word N stands for a whole number within [min, max]
};

struct Option {
  std::string_view name;         // "--max-tokens"
  std::string_view environment;  // "FATHOM_MAX_TOKENS"; empty: command line only
  Kind kind;
  std::string_view commands;  // separated by spaces; "*": all
  std::string_view value;     // placeholder in the help: "N", "auto|off|N"
  std::string_view standard;  // what holds when it is not given
  std::string_view help;
  double min = 0;
  double max = 0;
};

struct Command {
  std::string_view name;
  std::string_view arguments;  // "DIR [--json] [--deep]"
  std::string_view help;
  int64_t positional_max;  // words that are no options
};

std::span<const Option> all_options();
std::span<const Command> all_commands();

// The values given, checked against the table.
class Settings {
 public:
  bool flag(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::string text_or_standard(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  int64_t integer_or_standard(std::string_view name) const;
  const std::vector<std::string>& positional() const { return positional_; }

 private:
  friend Result<Settings> parse_settings(const Command&, std::span<const std::string>,
                                         const std::map<std::string, std::string>&);
  std::map<std::string_view, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

// Arguments after the command's name, then the environment for what they leave open. Unknown
// options and unknown FATHOM_ variables are errors that suggest the nearest name.
Result<Settings> parse_settings(const Command& command, std::span<const std::string> arguments,
                                const std::map<std::string, std::string>& environment);

// kInvalidArgument with a suggestion.
Result<const Command*> find_command(std::string_view name);

// The FATHOM_ variables of this process.
std::map<std::string, std::string> fathom_environment();

std::string help_text();
std::string help_text(const Command& command);

// Letters to insert, delete, replace or swap to make `b` of `a`.
int64_t edit_distance(std::string_view a, std::string_view b);

}  // namespace fathom::cli
