#include "server/api_error.h"

#include <gtest/gtest.h>

namespace fathom::server {
namespace {

TEST(ApiError, APictureThatFoundNoFreeDecoderMayComeAgain) {
  const std::string path = "messages[0].content[0].image_url.url";
  const ApiError busy = picture_error(error(Code::kUnavailable, "4 are being decoded"), path);
  EXPECT_EQ(busy.status, 429);
  EXPECT_GT(busy.retry_after_s, 0);
  EXPECT_EQ(busy.param, path);
  for (const Code code : {Code::kInvalidArgument, Code::kUnsupported, Code::kResourceExhausted,
                          Code::kDeadlineExceeded})
    EXPECT_EQ(picture_error(error(code, "bad"), path).status, 400) << code_name(code);
}

TEST(ApiError, NoMemoryForASequenceIsA503ThatMayComeAgain) {
  const ApiError full = api_error(error(Code::kResourceExhausted, "no room"));
  EXPECT_EQ(full.status, 503);
  EXPECT_GT(full.retry_after_s, 0);
}

}  // namespace
}  // namespace fathom::server
