// Times the vision tower of a config on random weights: `fathom bench vision`, and the test of the
// full size. Computes no table and prints nothing.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/context.h"
#include "model/deepseek_v41/config.h"

namespace fathom::v41 {

struct VisionBenchOptions {
  VisionConfig vision;         // default: the released model
  int64_t hidden_size = 5120;  // D of the text model
  int64_t picture_width = 1554;
  int64_t picture_height = 1078;
  const char* policy = "reference";
};

struct VisionBenchResult {
  int64_t patches = 0;
  int64_t span_tokens = 0;
  double seconds = 0;         // resize to placed rows
  double linear_flop = 0;     // 2 a multiply-add; all matrix products with weights
  double attention_flop = 0;  // q·kᵀ and p·v
  int64_t weight_bytes = 0;
  int64_t extra_bytes_peak = 0;  // resident memory beyond what it was with the weights in place
};

// The weights are drawn fresh (1 GB for the released model); `context` is used as in the product.
Result<VisionBenchResult> run_vision_bench(const kernels::Context& context,
                                           const VisionBenchOptions& options);

}  // namespace fathom::v41
