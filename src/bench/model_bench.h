// The whole model beside the bytes it has to read and the products it has to make.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench/ceilings.h"
#include "bench/figure.h"
#include "kernels/context.h"

namespace fathom::bench {

struct ModelBenchOptions {
  std::string directory;
  std::string isa;
  int threads = 1;
};

// The released vision tower on random weights, a picture of 1554×1078.
Result<std::vector<Figure>> bench_vision(const kernels::Context& context, const Ceilings& ceilings);

// Reading the model from a disk whose cache was dropped, and the first token after that.
Result<std::vector<Figure>> bench_load(const ModelBenchOptions& options, const Ceilings& ceilings);

// Tokens a second, one sequence. Bound: reading the weights that a token is multiplied with.
Result<std::vector<Figure>> bench_decode(const ModelBenchOptions& options,
                                         const Ceilings& ceilings);

// 512 tokens at once against the products with weights at the bf16 rate, nothing trimmed; and the
// rate at 8192 tokens against that at 1024, where the context allows it.
Result<std::vector<Figure>> bench_prefill(const ModelBenchOptions& options,
                                          const Ceilings& ceilings);

// Milliseconds to the first token's logits after 100 tokens of text, and after a picture.
Result<std::vector<Figure>> bench_first_token(const ModelBenchOptions& options);

}  // namespace fathom::bench
