// The kinds of golden cases. Each function runs one case in all its arithmetics and adds its lines;
// an error is a damaged golden or a failed run, not a difference.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "verify/golden.h"
#include "verify/recorder.h"
#include "verify/report.h"
#include "verify/runner.h"

namespace fathom::verify {

// An arithmetic of the golden, the policy that has it, and what a comparison of logits can prove.
struct Arithmetic {
  const char* suffix;  // of the golden's tensors; empty: the case's own arithmetic
  const char* policy;
  Limit logits_limit;
};
std::vector<Arithmetic> arithmetics(const GoldenCase& golden);

Status run_prefill_case(const Subject& subject, GoldenCase& golden, Report* report);  // and taps
Status run_decode_case(const Subject& subject, GoldenCase& golden, Report* report);
Status run_greedy_case(const Subject& subject, GoldenCase& golden, Report* report);
Status run_picture_case(const Subject& subject, const std::string& folder, GoldenCase& golden,
                        Report* report);
Status run_draft_case(const Subject& subject, GoldenCase& golden, Report* report);
Status run_quantiser_case(const Subject& subject, GoldenCase& golden, Report* report);
Status run_gemm_case(const Subject& subject, GoldenCase& golden, Report* report);

// How a case's own tensors are compared step by step: the policy, and the run's name behind it.
std::string policy_of(const GoldenCase& golden);
RecorderOptions feeding(const GoldenCase& golden);
inline constexpr const char* kEachStep = ", each step alone";

// An integer of index.json; kDataLoss names the case and the field.
Result<int64_t> index_integer(const GoldenCase& golden, const Json& entry, const char* field);

// All of `got` against tensor `name` of the golden, as the quantity `title`.
Tally compare_tensor(GoldenCase& golden, const std::string& name, const std::string& title,
                     Limit limit, std::span<const float> got);

// The first of the largest logits.
TokenId best_token(std::span<const float> logits);
// Where the best two logits are closer than this, another arithmetic may choose the other one.
inline constexpr double kMarginMin = 0.1;

// Adds a FAIL for each tensor of the case that no check took.
void report_untaken(GoldenCase& golden, Report* report);

}  // namespace fathom::verify
