#include "verify/report.h"

#include <fmt/format.h>

namespace fathom::verify {
namespace {

std::string line_text(const Tally& tally) {
  std::string line = fmt::format(
      "    {:28} {:>9} numbers  {:8.4f} % equal  max {:>5} ulp  {:8.1e} abs  rel L2 {:7.1e}  "
      "limit {:28} {}",
      tally.name(), tally.count(), 100 * tally.equal_share(), tally.ulp_max(), tally.abs_max(),
      tally.rel_l2(), limit_text(tally.limit()), verdict_name(tally.verdict()));
  if (!tally.failure().empty()) return line + "  " + tally.failure();
  if (!tally.worst().empty()) line += "  worst " + tally.worst();
  return line;
}

Json line_json(const ReportLine& line) {
  const Tally& tally = line.tally;
  return {{"case", line.case_name},
          {"run", line.run},
          {"quantity", tally.name()},
          {"count", tally.count()},
          {"equal", tally.equal_count()},
          {"equal_share", tally.equal_share()},
          {"max_ulp", tally.ulp_max()},
          {"max_abs", tally.abs_max()},
          {"rel_l2", tally.rel_l2()},
          {"worst", tally.worst()},
          {"failure", tally.failure()},
          {"limit", std::string(limit_text(tally.limit()))},
          {"verdict", std::string(verdict_name(tally.verdict()))}};
}

}  // namespace

void Report::add(const std::string& case_name, const std::string& run, std::vector<Tally> tallies) {
  for (Tally& tally : tallies) lines.push_back({case_name, run, std::move(tally)});
}

int64_t Report::count(Verdict verdict) const {
  int64_t count = 0;
  for (const ReportLine& line : lines) count += line.tally.verdict() == verdict ? 1 : 0;
  return count;
}

bool Report::passed() const {
  return count(Verdict::kPass) > 0 && count(Verdict::kFail) == 0;
}

std::string Report::text() const {
  std::string out = fmt::format("verify {} against {}, kernels {}\n", model, golden, isa);
  std::string place;
  for (const ReportLine& line : lines) {
    const std::string here = line.case_name + "  (" + line.run + ")";
    if (here != place) out += "  " + here + "\n";
    place = here;
    out += line_text(line.tally) + "\n";
  }
  for (const std::string& name : not_run) out += "  not run: " + name + "\n";
  const int64_t border = count(Verdict::kExplained);
  out +=
      fmt::format("{} quantities: {} passed, {} failed, {} printed without a limit; {} not run\n",
                  lines.size(), count(Verdict::kPass) + border, count(Verdict::kFail),
                  count(Verdict::kPrinted), not_run.size());
  if (border > 0)
    out += fmt::format("{} of them beyond their limit, by no more than rounding borders explain\n",
                       border);
  return out + (passed() ? "PASS\n" : "FAIL\n");
}

Json Report::json() const {
  Json all = Json::array();
  for (const ReportLine& line : lines) all.push_back(line_json(line));
  return {{"model", model},
          {"golden", golden},
          {"isa", isa},
          {"lines", std::move(all)},
          {"not_run", not_run},
          {"passed", count(Verdict::kPass) + count(Verdict::kExplained)},
          {"passed_at_border", count(Verdict::kExplained)},
          {"failed", count(Verdict::kFail)},
          {"printed", count(Verdict::kPrinted)},
          {"verdict", passed() ? "PASS" : "FAIL"}};
}

}  // namespace fathom::verify
