#include "verify/verify.h"

#include <gtest/gtest.h>

namespace fathom::verify {
namespace {

std::string golden_path(const std::string& name) {
  return std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + name;
}

// The whole of a golden folder on the best kernels of this machine.
void expect_pass(const std::string& folder) {
  ThreadPool pool(2);
  const VerifyOptions options = {.model = golden_path(folder) + "/checkpoint",
                                 .golden = golden_path(folder),
                                 .cases = "",
                                 .isa = kernels::available_isas().back(),
                                 .progress = nullptr};
  const Result<Report> report = verify(options, pool);
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_TRUE(report->passed()) << report->text();
}

TEST(Verify, TinyGoldensPass) {
  expect_pass("v41-tiny");
}

TEST(Verify, WideGoldensPass) {
  expect_pass("v41-wide");
}

}  // namespace
}  // namespace fathom::verify
