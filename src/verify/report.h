// What verify found: one line a quantity and run, and the cases and arithmetics that were left out.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "verify/tally.h"

namespace fathom::verify {

struct ReportLine {
  std::string case_name;
  std::string run;  // "reference, each step alone", "smooth, chunks of 7"
  Tally tally;
};

struct Report {
  std::string model;
  std::string golden;
  std::string isa;
  std::vector<ReportLine> lines;
  std::vector<std::string> not_run;  // arithmetics that Fathom does not have

  void add(const std::string& case_name, const std::string& run, std::vector<Tally> tallies);
  int64_t count(Verdict verdict) const;
  // True when something was compared and nothing failed.
  bool passed() const;

  // The table that a person reads, and the same as data.
  std::string text() const;
  Json json() const;
};

}  // namespace fathom::verify
