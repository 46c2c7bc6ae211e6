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
  EXPECT_EQ(report->count(Verdict::kExplained), 0) << "no allowance is needed\n" << report->text();
}

TEST(Verify, TinyGoldensPass) {
  expect_pass("v41-tiny");
}

TEST(Verify, WideGoldensPass) {
  expect_pass("v41-wide");
}

// Routers, default layer lists, stream counts and Engram shapes that the official fixtures lack.
TEST(Verify, GoldensOfOtherConfigurationsPass) {
  expect_pass("v41-oracle-a");
  expect_pass("v41-oracle-b");
}

TEST(Verify, AWrongModelFails) {
  ThreadPool pool(2);
  const VerifyOptions options = {.model = golden_path("v41-oracle-a") + "/checkpoint",
                                 .golden = golden_path("v41-oracle-b"),
                                 .cases = "",
                                 .isa = kernels::available_isas().back(),
                                 .progress = nullptr};
  const Result<Report> report = verify(options, pool);
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_FALSE(report->passed());
  EXPECT_GT(report->count(Verdict::kFail), 0);
}

TEST(Verify, AMissingFolderIsAnError) {
  ThreadPool pool(1);
  const VerifyOptions options = {.model = golden_path("v41-oracle-a") + "/checkpoint",
                                 .golden = golden_path("nowhere"),
                                 .cases = "",
                                 .isa = kernels::Isa::kPortable,
                                 .progress = nullptr};
  EXPECT_EQ(verify(options, pool).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace fathom::verify
