#include "engine/stop_strings.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

// What is shown when `text` comes in pieces of one character.
std::string in_pieces(StopMatcher& matcher, std::string_view text) {
  std::string shown;
  for (char c : text) shown += matcher.feed(std::string_view(&c, 1));
  return shown + matcher.finish();
}

TEST(StopMatcher, CutsAtTheMatchHoweverTheTextComes) {
  StopMatcher whole({"STOP"});
  EXPECT_EQ(whole.feed("one STOP two"), "one ");
  EXPECT_EQ(whole.matched(), "STOP");
  StopMatcher pieces({"STOP"});
  EXPECT_EQ(in_pieces(pieces, "one STOP two"), "one ");
}

TEST(StopMatcher, GivesOutWhatTurnedOutNotToMatch) {
  StopMatcher matcher({"STOP", "aab"});
  EXPECT_EQ(matcher.feed("ST"), "");
  EXPECT_EQ(matcher.held_bytes(), 2);
  EXPECT_EQ(matcher.feed("AR"), "STAR");
  EXPECT_EQ(matcher.feed("aa"), "");
  EXPECT_EQ(matcher.feed("a"), "a") << "aa may still begin aab";
  EXPECT_EQ(matcher.finish(), "aa");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, TheEarliestMatchWins) {
  StopMatcher matcher({"later", "late"});
  EXPECT_EQ(in_pieces(matcher, "it is later"), "it is ");
  EXPECT_EQ(matcher.matched(), "late");
}

TEST(StopMatcher, NothingComesAfterAMatch) {
  StopMatcher matcher({"."});
  EXPECT_EQ(matcher.feed("a.b"), "a");
  EXPECT_EQ(matcher.feed("c.d"), "");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace fathom
