#include "verify/verify.h"

#include "verify/cases.h"

namespace fathom::verify {
namespace {

// An arithmetic of the goldens that Fathom does not have: index scores in bf16 (spec §11 item 3).
constexpr std::string_view kForeignSuffix = "_bf16_scores";

Status run_case(const Subject& subject, const std::string& folder, GoldenCase& golden,
                Report* report) {
  const std::string& kind = golden.kind();
  if (kind == "prefill" || kind == "taps") return run_prefill_case(subject, golden, report);
  if (kind == "decode") return run_decode_case(subject, golden, report);
  if (kind == "greedy") return run_greedy_case(subject, golden, report);
  if (kind == "picture") return run_picture_case(subject, folder, golden, report);
  if (kind == "dspark") return run_draft_case(subject, golden, report);
  if (kind == "quantisers") return run_quantiser_case(subject, golden, report);
  if (kind == "gemm") return run_gemm_case(subject, golden, report);
  return error(Code::kUnsupported,
               "case {} is of the kind {}; known are prefill, taps, decode, greedy, picture, "
               "quantisers, gemm and dspark",
               golden.name(), kind);
}

// A case that can't be run is a FAIL line, so that the others are still looked at.
void fail_case(const std::string& name, const Status& why, Report* report) {
  Tally tally("case", Limit::kEqual);
  tally.fail(why.message());
  report->add(name, "not completed", {tally});
}

}  // namespace

void report_untaken(GoldenCase& golden, Report* report) {
  for (const std::string& name : golden.names()) {
    if (!name.ends_with(kForeignSuffix)) continue;
    golden.ignore(name);
    report->not_run.push_back(golden.name() + ": " + name + " (an arithmetic Fathom lacks)");
  }
  for (const std::string& name : golden.untaken()) {
    Tally tally(name, Limit::kEqual);
    tally.fail("named in the golden and not produced");
    report->add(golden.name(), "missing", {tally});
  }
}

Result<Report> verify(const VerifyOptions& options, ThreadPool& pool) {
  FATHOM_ASSIGN(const Subject subject, open_subject(options.model, options.isa, pool));
  FATHOM_ASSIGN(const GoldenFolder folder, open_golden_folder(options.golden));
  Report report;
  report.model = options.model;
  report.golden = options.golden;
  report.isa = kernels::describe_isa(options.isa);
  for (const auto& [name, entry] : folder.cases) {
    if (!name.starts_with(options.cases)) continue;
    if (options.progress) options.progress(name);
    Result<GoldenCase> golden = GoldenCase::open(options.golden, name, entry);
    if (!golden) {
      fail_case(name, golden.status(), &report);
      continue;
    }
    const size_t line_count = report.lines.size();
    const Status status = run_case(subject, options.golden, *golden, &report);
    if (!status) fail_case(name, status, &report);
    report_untaken(*golden, &report);
    if (report.lines.size() == line_count)
      fail_case(name, error(Code::kDataLoss, "case {} holds nothing that is compared", name),
                &report);
  }
  return report;
}

}  // namespace fathom::verify
