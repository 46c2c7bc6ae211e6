// The numeric policies as data: which of the model's own roundings and quantisers a run performs.
// Every rounding point in code asks the policy; ops get the wish through their args.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"

namespace fathom::kernels {

struct Policy {
  std::string_view name;
  bool round_bf16 = true;  // outputs that the reference stores as bf16 are rounded (§4.4)
  bool quantise_activations = true;  // FP8 rows in front of FP8 and FP4 linears (§4.3)
  bool quantise_caches = true;       // window, compressed rows, index queries and keys (§3.8)
};

// reference  the model's own rounding points; the default
// f32        no storage rounding, every quantiser
// smooth     neither: a smooth function of its input
std::span<const Policy> policies();

// kInvalidArgument names the policies there are.
Result<Policy> find_policy(std::string_view name);

}  // namespace fathom::kernels
