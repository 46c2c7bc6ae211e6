#include "text/internal/pre_tokenizer.h"

#include "text/internal/unicode_classes.h"

namespace fathom::text::internal {

namespace {

using Pieces = std::vector<std::string_view>;

bool is_ascii_letter(const Char& c) {
  return (c.code_point >= 'A' && c.code_point <= 'Z') ||
         (c.code_point >= 'a' && c.code_point <= 'z');
}

bool is_ascii_digit(const Char& c) {
  return c.code_point >= '0' && c.code_point <= '9';
}

bool is_ascii_punctuation(const Char& c) {
  return c.code_point > 0x20 && c.code_point < 0x7F && !is_ascii_letter(c) && !is_ascii_digit(c);
}

bool is_chinese_or_kana(const Char& c) {
  return (c.code_point >= 0x4E00 && c.code_point <= 0x9FA5) ||
         (c.code_point >= 0x3040 && c.code_point <= 0x30FF);
}

// End of the run of characters from `at` for which `wanted` holds.
template <typename Wanted>
size_t run_end(std::string_view text, size_t at, Wanted wanted) {
  for (;;) {
    const Char c = char_at(text, at);
    if (c.byte_count == 0 || !wanted(c)) return at;
    at += c.byte_count;
  }
}

size_t letters_end(std::string_view text, size_t at) {
  return run_end(text, at, [](const Char& c) { return c.is_letter_or_mark(); });
}

// A run of white space and two places in it.
struct SpaceRun {
  size_t end = 0;
  size_t last_begin = 0;   // of its last character
  size_t after_break = 0;  // behind its last CR or LF; 0: it has none
};

SpaceRun space_run(std::string_view text, size_t at) {
  SpaceRun run{at, at, 0};
  for (;;) {
    const Char c = char_at(text, run.end);
    if (!c.is(CharClass::kSpace)) return run;
    run.last_begin = run.end;
    run.end += c.byte_count;
    if (c.is_line_break()) run.after_break = run.end;
  }
}

// \s+(?!\S)|\s+ at a run that is not empty: before something else the run gives back its last
// character, unless that is all it has.
size_t spaces_end(std::string_view text, size_t at, const SpaceRun& run) {
  return run.end < text.size() && run.last_begin > at ? run.last_begin : run.end;
}

// End of a match of stage 3 at `at`, or `at` when nothing matches there (spec §3, 3a-3f: the first
// alternative that matches wins).
size_t match_word(std::string_view text, size_t at) {
  const Char first = char_at(text, at);
  const size_t second_at = at + first.byte_count;
  if (is_ascii_punctuation(first)) {
    const size_t end = run_end(text, second_at, is_ascii_letter);
    if (end > second_at) return end;
  }
  if (!first.is_line_break() && !first.is(CharClass::kLetter) &&
      !first.is_punctuation_or_symbol()) {
    const size_t end = letters_end(text, second_at);
    if (end > second_at) return end;
  }
  if (first.is_letter_or_mark()) return letters_end(text, at);
  const size_t marks_at = first.code_point == ' ' ? second_at : at;
  const size_t marks_end =
      run_end(text, marks_at, [](const Char& c) { return c.is_punctuation_or_symbol(); });
  if (marks_end > marks_at)
    return run_end(text, marks_end, [](const Char& c) { return c.is_line_break(); });
  if (!first.is(CharClass::kSpace)) return at;
  const SpaceRun run = space_run(text, at);
  return run.after_break > 0 ? run.after_break : spaces_end(text, at, run);
}

// Matches become pieces, and so does the text between two matches.
template <typename Match>
void split_isolated(std::string_view text, Match match, Pieces* pieces) {
  size_t gap = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = match(text, at);
    if (end == at) {
      at += char_at(text, at).byte_count;
      continue;
    }
    if (gap < at) pieces->push_back(text.substr(gap, at - gap));
    pieces->push_back(text.substr(at, end - at));
    gap = at = end;
  }
  if (gap < text.size()) pieces->push_back(text.substr(gap));
}

size_t match_number(std::string_view text, size_t at) {
  int left = 3;
  return run_end(text, at, [&](const Char& c) { return c.is(CharClass::kNumber) && left-- > 0; });
}

size_t match_chinese_or_kana(std::string_view text, size_t at) {
  return run_end(text, at, is_chinese_or_kana);
}

void split_deepseek(std::string_view text, Pieces* pieces) {
  Pieces numbers, scripts;
  split_isolated(text, match_number, &numbers);
  for (const auto piece : numbers) split_isolated(piece, match_chinese_or_kana, &scripts);
  for (const auto piece : scripts) split_isolated(piece, match_word, pieces);
}

size_t match_contraction(std::string_view text, size_t at) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.substr(at).starts_with(ending)) return at + ending.size();
  return at;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t match_gpt2(std::string_view text, size_t at) {
  if (const size_t end = match_contraction(text, at); end > at) return end;
  const size_t begin = text[at] == ' ' ? at + 1 : at;
  const Char first = char_at(text, begin);
  if (first.byte_count > 0 && !first.is(CharClass::kSpace)) {
    const auto kind = [](const Char& c) {
      return c.is(CharClass::kLetter) || c.is(CharClass::kNumber) || c.is(CharClass::kSpace)
                 ? c.char_class
                 : CharClass::kOther;
    };
    return run_end(text, begin, [&](const Char& c) { return kind(c) == kind(first); });
  }
  return spaces_end(text, at, space_run(text, at));
}

// w[0-9]+| W[0-9]+
size_t match_listed_word(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  const size_t begin = rest.starts_with('w') ? at + 1 : rest.starts_with(" W") ? at + 2 : at;
  const size_t end = begin > at ? run_end(text, begin, is_ascii_digit) : at;
  return end > begin ? end : at;
}

}  // namespace

std::vector<std::string_view> split_pieces(PreTokenizer kind, std::string_view text) {
  Pieces pieces;
  switch (kind) {
    case PreTokenizer::kDeepSeek:
      split_deepseek(text, &pieces);
      break;
    case PreTokenizer::kGpt2:
      split_isolated(text, match_gpt2, &pieces);
      break;
    case PreTokenizer::kWords:
      split_isolated(text, match_listed_word, &pieces);
      break;
    case PreTokenizer::kWhole:
      if (!text.empty()) pieces.push_back(text);
      break;
  }
  return pieces;
}

}  // namespace fathom::text::internal
