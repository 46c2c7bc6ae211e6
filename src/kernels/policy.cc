#include "kernels/policy.h"

#include <array>

namespace fathom::kernels {

std::span<const Policy> policies() {
  static constexpr std::array<Policy, 3> kPolicies = {{
      {.name = "reference",
       .round_bf16 = true,
       .quantise_activations = true,
       .quantise_caches = true},
      {.name = "f32", .round_bf16 = false, .quantise_activations = true, .quantise_caches = true},
      {.name = "smooth",
       .round_bf16 = false,
       .quantise_activations = false,
       .quantise_caches = false},
  }};
  return kPolicies;
}

Result<Policy> find_policy(std::string_view name) {
  std::string known;
  for (const Policy& policy : policies()) {
    if (policy.name == name) return policy;
    known += known.empty() ? "" : ", ";
    known += policy.name;
  }
  return error(Code::kInvalidArgument, "policy \"{}\" is unknown; choose one of {}", name, known);
}

}  // namespace fathom::kernels
