// The released tower's widths on the picture of 1554x1078, with one of its 32 blocks: every shape,
// tile and buffer of the full size, at a thirtieth of the time.
#include "model/deepseek_v41/vision_bench.h"

#include <gtest/gtest.h>

namespace fathom::v41 {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;  // shadow memory counts as resident
#else
constexpr bool kIsSanitized = false;
#endif

TEST(SlowVision, FullSizePictureRunsWithinItsMemory) {
  ThreadPool pool(2);
  kernels::Workspace workspace;
  kernels::Context context{pool, workspace};
  context.isa = kernels::available_isas().back();
  VisionBenchOptions options;
  options.vision.num_hidden_layers = 1;
  const auto result = run_vision_bench(context, options);
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result->patches, 8547);
  EXPECT_EQ(result->span_tokens, 990);
  EXPECT_GT(result->seconds, 0);
  // 4 N² C; and 2 a weight and row: 588 C + 4 C² + 3 C·2816 for 8,547 patches, the aligner's
  // D (9 C + D) for 962 tokens.
  EXPECT_DOUBLE_EQ(result->attention_flop, 4.0 * 8547 * 8547 * 1024);
  EXPECT_DOUBLE_EQ(result->linear_flop,
                   2.0 * 8547 * (588.0 * 1024 + 4.0 * 1024 * 1024 + 3.0 * 1024 * 2816) +
                       2.0 * 962 * 5120 * (9216.0 + 5120));
  // Buffers are those of all 32 blocks: no N x N, which would be 292 MB a head.
  if (!kIsSanitized) {
    EXPECT_LE(result->extra_bytes_peak, 600'000'000);
  }
}

TEST(VisionBench, NamesAnUnknownPolicy) {
  ThreadPool pool(1);
  kernels::Workspace workspace;
  const kernels::Context context{pool, workspace};
  VisionBenchOptions options;
  options.policy = "exact";
  EXPECT_FALSE(run_vision_bench(context, options).is_ok());
}

}  // namespace
}  // namespace fathom::v41
