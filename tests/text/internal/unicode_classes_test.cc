#include "text/internal/unicode_classes.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/text/test_data.h"

namespace fathom::text::internal {
namespace {

// The committed table is the golden's: every code point, so that neither can drift.
TEST(UnicodeClasses, EqualTheReferencesRegexEngine) {
  const Json golden = read_golden("tokenizer/unicode-classes.json");
  const std::map<std::string, CharClass> classes = {
      {"L", CharClass::kLetter},      {"M", CharClass::kMark},   {"N", CharClass::kNumber},
      {"P", CharClass::kPunctuation}, {"S", CharClass::kSymbol}, {"space", CharClass::kSpace}};
  std::vector<CharClass> want(0x110000, CharClass::kOther);
  for (const auto& [name, char_class] : classes)
    for (const Json& range : golden.at(name))
      for (int c = range.at(0); c <= range.at(1); ++c) want[c] = char_class;
  int64_t wrong_count = 0;
  for (uint32_t c = 0; c < want.size(); ++c) wrong_count += class_of(c) != want[c];
  EXPECT_EQ(wrong_count, 0);
}

}  // namespace
}  // namespace fathom::text::internal
