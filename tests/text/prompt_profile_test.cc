#include "text/prompt_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/test_data.h"

namespace fathom::text {
namespace {

using testing::HasSubstr;

TEST(PromptProfile, UnknownNamesAreAnsweredWithTheKnownOnes) {
  const auto profile = find_prompt_profile("v5");
  EXPECT_EQ(profile.status().code(), Code::kNotFound);
  EXPECT_THAT(profile.status().message(), HasSubstr("v41, v4-0731, v4-preview"));
}

TEST(PromptProfile, FindsTheReleasedIds) {
  const auto markers = find_markers(released_tokenizer(), **find_prompt_profile("v41"));
  ASSERT_TRUE(markers) << markers.status().message();
  EXPECT_EQ(markers->bos, 0);
  EXPECT_EQ(markers->think_close, 128822);
  EXPECT_EQ(markers->image, 129264);
  EXPECT_THAT(markers->end_of_turn(), testing::ElementsAre(1, 0, 128803, 128799));
}

// In V4's file <｜System｜> is no token: V4.1's prompts would fall apart in silence.
TEST(PromptProfile, RefusesTheTokenizerOfAnotherModel) {
  const auto markers = find_markers(released_tokenizer("v4"), **find_prompt_profile("v41"));
  EXPECT_EQ(markers.status().code(), Code::kUnsupported);
  EXPECT_THAT(markers.status().message(), HasSubstr("<｜"));
  EXPECT_TRUE(find_markers(released_tokenizer("v4"), **find_prompt_profile("v4-0731")));
  EXPECT_FALSE(find_markers(*stub_tokenizer(), **find_prompt_profile("v41")));
}

}  // namespace
}  // namespace fathom::text
