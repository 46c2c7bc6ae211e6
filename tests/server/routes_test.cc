#include "server/routes.h"

#include <gtest/gtest.h>

namespace fathom::server {
namespace {

TEST(Routes, AnswerWithAndWithoutVersionPrefix) {
  for (const char* path : {"/v1/chat/completions", "/chat/completions", "/beta/chat/completions",
                           "/beta/v1/chat/completions", "/v1/chat/completions/"})
    EXPECT_EQ(find_route(path).endpoint, Endpoint::kChatCompletions) << path;
  EXPECT_EQ(find_route("/v1/health").endpoint, Endpoint::kHealth);
  EXPECT_TRUE(find_route("/health").is_public);
  EXPECT_FALSE(find_route("/v1/models").is_public);
}

TEST(Routes, OtherSpellingsAreUnknownFiles) {
  for (const char* path :
       {"//v1/chat/completions", "/V1/chat/completions", "/v1/embeddings",
        "/v1/../v1/chat/completions", "/v1%2fchat/completions", "/v1/completions"}) {
    const Endpoint endpoint = find_route(path).endpoint;
    EXPECT_TRUE(endpoint == Endpoint::kUnknown || endpoint == Endpoint::kPage) << path;
  }
}

TEST(Routes, ADoubledVersionIsExplained) {
  EXPECT_NE(find_route("/v1/v1/models").hint.find("already contains /v1"), std::string::npos);
}

TEST(Routes, AModelIdIsTheWholeRest) {
  EXPECT_EQ(find_route("/v1/models/deepseek-ai/V4.1").rest, "deepseek-ai/V4.1");
  EXPECT_EQ(find_route("/models/a%2Fb%20c").rest, "a/b c");
  EXPECT_EQ(find_route("/v1/models/").rest, "");
}

TEST(Routes, MethodsAreExact) {
  const Route chat = find_route("/v1/chat/completions");
  EXPECT_TRUE(allows_method(chat, "POST"));
  EXPECT_FALSE(allows_method(chat, "GET"));
  EXPECT_FALSE(allows_method(chat, "post"));
  EXPECT_TRUE(allows_method(find_route("/v1/models"), "HEAD"));
}

}  // namespace
}  // namespace fathom::server
