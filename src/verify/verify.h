// `fathom verify`: proves a build and a checkpoint against a golden folder made with the official
// code. Each kind of case has its file; the goldens' README says what each arithmetic can prove.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "verify/report.h"

namespace fathom::verify {

struct VerifyOptions {
  std::string model;   // directory of the checkpoint
  std::string golden;  // directory with index.json
  std::string cases;   // only cases whose name starts with this; empty: all
  kernels::Isa isa = kernels::Isa::kPortable;
  std::function<void(const std::string& case_name)> progress;  // before each case; may be empty
};

// Errors: the model or the golden folder can't be opened, or a case is damaged. Differences are
// not errors: they are in the report.
Result<Report> verify(const VerifyOptions& options, ThreadPool& pool);

}  // namespace fathom::verify
