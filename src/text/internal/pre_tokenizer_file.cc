// Which pre-tokenizer a tokenizer.json asks for. Patterns are recognised, not compiled.
#include "text/internal/json_fields.h"
#include "text/internal/tokenizer_data.h"

namespace fathom::text::internal {

namespace {

constexpr std::string_view kDigits = R"(\p{N}{1,3})";
constexpr std::string_view kScripts = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kWordStart = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)";
constexpr std::string_view kWordMiddle = R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)";
constexpr std::string_view kWordAfter = R"(]*|\s*[)";
constexpr std::string_view kWordEnd = R"(]+|\s+(?!\S)|\s+)";
constexpr std::string_view kListedWords = "w[0-9]+| W[0-9]+";

// Stage 3 with `line_break` as the file spells CR LF in its classes.
std::string word_pattern(std::string_view line_break) {
  return fmt::format("{}{}{}{}{}{}{}", kWordStart, line_break, kWordMiddle, line_break, kWordAfter,
                     line_break, kWordEnd);
}

Result<std::string> split_pattern(const Json& split) {
  const Json& pattern = member(member(split, "pattern"), "Regex");
  if (!is_string(member(split, "behavior"), "Isolated") || is_set(member(split, "invert")) ||
      !pattern.is_string())
    return error(Code::kUnsupported, "pre_tokenizer: {} is not an isolated split by a Regex",
                 shown(split));
  return pattern.get<std::string>();
}

Result<PreTokenizer> known_patterns(const std::vector<std::string>& patterns) {
  if (patterns.empty()) return PreTokenizer::kWhole;
  if (patterns.size() == 1 && patterns[0] == kListedWords) return PreTokenizer::kWords;
  if (patterns.size() == 3 && patterns[0] == kDigits && patterns[1] == kScripts &&
      (patterns[2] == word_pattern("\r\n") || patterns[2] == word_pattern("\\r\\n")))
    return PreTokenizer::kDeepSeek;
  return error(Code::kUnsupported,
               "pre_tokenizer: {} split patterns, the first {}, are none that Fathom knows",
               patterns.size(), in_quotes(patterns[0]));
}

}  // namespace

Result<PreTokenizer> read_pre_tokenizer(const Json& value) {
  Json steps = Json::array({value});
  if (is_string(member(value, "type"), "Sequence")) steps = member(value, "pretokenizers");
  if (!steps.is_array() || steps.empty() || !is_string(member(steps.back(), "type"), "ByteLevel"))
    return error(Code::kUnsupported, "pre_tokenizer: {} does not end in a ByteLevel step",
                 shown(value));
  const Json& byte_level = steps.back();
  if (is_set(member(byte_level, "add_prefix_space")))
    return error(Code::kUnsupported, "pre_tokenizer: add_prefix_space is not supported");
  std::vector<std::string> patterns;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!is_string(member(steps[i], "type"), "Split"))
      return error(Code::kUnsupported, "pre_tokenizer: step {} is {}, wanted a Split", i,
                   shown(steps[i]));
    FATHOM_ASSIGN(std::string pattern, split_pattern(steps[i]));
    patterns.push_back(std::move(pattern));
  }
  const Json& use_regex = member(byte_level, "use_regex");
  if (use_regex != false && patterns.empty()) return PreTokenizer::kGpt2;
  if (use_regex != false)
    return error(Code::kUnsupported, "pre_tokenizer: ByteLevel with use_regex after Splits");
  return known_patterns(patterns);
}

}  // namespace fathom::text::internal
