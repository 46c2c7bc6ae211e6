#include "base/json.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Json, ReadsEveryKindOfValue) {
  const auto json = parse_json(R"({"a": [1, -2, 2.5, "x", null, true], "b": {"c": {}}})");
  ASSERT_TRUE(json.is_ok()) << json.status().message();
  EXPECT_EQ(json->dump(), R"({"a":[1,-2,2.5,"x",null,true],"b":{"c":{}}})");
}

TEST(Json, RefusesANameThatAppearsTwiceAtAnyDepth) {
  const auto json = parse_json(R"({"a": {"b": 1, "b": 2}})");
  ASSERT_FALSE(json.is_ok());
  EXPECT_NE(json.status().message().find("\"b\" appears twice"), std::string::npos);
}

TEST(Json, CanLetTheLastDuplicateWinExceptForNamedOnes) {
  const JsonLimits lax = {.last_duplicate_wins = true, .unique_names = {"messages"}};
  const auto json = parse_json(R"({"a": 1, "a": [2]})", lax);
  ASSERT_TRUE(json.is_ok());
  EXPECT_EQ(json->dump(), R"({"a":[2]})");
  EXPECT_FALSE(parse_json(R"({"messages": [], "messages": []})", lax).is_ok());
}

TEST(Json, BoundsDepthBytesAndCount) {
  EXPECT_FALSE(parse_json(std::string(1000, '['), {.depth_max = 64}).is_ok());
  EXPECT_TRUE(parse_json("[[[]]]", {.depth_max = 3}).is_ok());
  EXPECT_FALSE(parse_json("[[[[]]]]", {.depth_max = 3}).is_ok());
  EXPECT_FALSE(parse_json("[1,2,3]", {.bytes_max = 6}).is_ok());
  EXPECT_FALSE(parse_json("[1,2,3]", {.values_max = 3}).is_ok());
  EXPECT_TRUE(parse_json("[1,2,3]", {.values_max = 4}).is_ok());
}

TEST(Json, NamesTheByteOfASyntaxErrorAndDoesNotEchoTheDocument) {
  const auto json = parse_json("{\"a\": " + std::string(5000, 'x') + "}");
  ASSERT_FALSE(json.is_ok());
  EXPECT_NE(json.status().message().find("at byte"), std::string::npos);
  EXPECT_LT(json.status().message().size(), 400u);
}

TEST(Json, SaysPlainlyThatANumberIsTooLarge) {
  const std::string message = parse_json("[1e999]").status().message();
  EXPECT_NE(message.find("number overflow"), std::string::npos) << message;
  EXPECT_EQ(message.find("exception"), std::string::npos) << message;
}

TEST(Json, RefusesTrailingBytesAndBadUtf8) {
  EXPECT_FALSE(parse_json("{} {}").is_ok());
  EXPECT_FALSE(parse_json("\"\xff\"").is_ok());
  EXPECT_FALSE(parse_json("").is_ok());
}

}  // namespace
}  // namespace fathom
