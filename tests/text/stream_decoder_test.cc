// The golden decodings stand in tokenizer_test.cc.
#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom::text {
namespace {

// Case STR-1: pieces of bytes, two of them bad, and an unfinished end.
TEST(Utf8Stream, GivesWholeCharactersAndMarksBadBytesAtOnce) {
  Utf8Stream stream;
  const std::pair<std::string, std::string> steps[] = {
      {" \xf0\x9f", " "}, {"\x98", ""},       {"\x80\xe6\xad", "😀"}, {"\xaa", "歪"},
      {"\xf0\x9f", ""},   {"\x9a\x80", "🚀"},  {"\xc3", ""},          {"\xa9", "é"},
      {"\x85", "\uFFFD"}, {"\xff", "\uFFFD"}, {"\xe2", ""}};
  for (const auto& [bytes, want] : steps) EXPECT_EQ(stream.push(bytes), want);
  EXPECT_TRUE(stream.has_pending());
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.flush(), "");
}

// All texts of up to four of these bytes: cut anywhere, the stream gives what the whole text gives,
// and always valid UTF-8.
TEST(Utf8Stream, DoesNotDependOnHowTheBytesArrive) {
  const std::string alphabet = "a\x80\xA0\xBF\xC2\xE0\xED\xF0\xF4\xFF";
  const size_t n = alphabet.size();
  for (size_t code = 0; code < n * n * n * n; ++code) {
    std::string bytes;
    for (size_t rest = code, i = 0; i < 4; ++i, rest /= n) bytes += alphabet[rest % n];
    const std::string whole = to_valid_utf8(bytes);
    ASSERT_TRUE(is_valid_utf8(whole));
    Utf8Stream stream;
    std::string parts;
    for (const char byte : bytes) {
      const std::string part = stream.push({&byte, 1});
      ASSERT_TRUE(is_valid_utf8(part));
      parts += part;
    }
    ASSERT_EQ(parts + stream.flush(), whole);
  }
}

TEST(Utf8Stream, KnowsValidText) {
  for (const std::string text : {"", "a", "é", "\uFFFF", "\U0010FFFF", "\uD7FF", "\uE000"})
    EXPECT_TRUE(is_valid_utf8(text));
  for (const std::string text : {"\x80", "\xC0\x80", "\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                 "\xE0\x80\x80", "\xF8\x88\x80\x80\x80", "a\xFF"})
    EXPECT_FALSE(is_valid_utf8(text));
}

}  // namespace
}  // namespace fathom::text
