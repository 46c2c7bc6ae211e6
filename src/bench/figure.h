// A measured number beside what the machine allows, and the printed forms of a list of them.
#pragma once

#include <string>
#include <vector>

namespace fathom::bench {

// share = value / bound, or bound / value where less is better. A line without a target or without
// a bound has 0 there.
struct Figure {
  std::string name;  // first word: the benchmark's name
  double value = 0;
  std::string unit;
  double bound = 0;
  double share = 0;
  double target = 0;  // of share, or of value when `target_is_value`
  bool target_is_value = false;
  bool met = true;
};

// value against a ceiling that is to be reached: met when value / bound >= target.
Figure rate_figure(std::string name, double value, std::string unit, double bound, double target);
// A time against the least that it could be: met when value <= factor · bound.
Figure time_figure(std::string name, double value, std::string unit, double bound, double factor);
// A value that may not exceed a limit.
Figure limit_figure(std::string name, double value, std::string unit, double limit);

// Which machine and build a report is about.
struct Origin {
  std::string build;
  std::string machine;
};

std::string machine_name();  // CPU model, cores, memory

std::string table_header();
std::string table_line(const Figure& figure);

// [{"name", "value", "unit", "bound", "share", "target", "met", "build", "machine"}]
std::string to_json(const std::vector<Figure>& figures, const Origin& origin);

}  // namespace fathom::bench
