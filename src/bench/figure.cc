#include "bench/figure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace fathom::bench {
namespace {

// Enough digits to compare runs, none that are noise.
std::string number(double value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 3);
}

}  // namespace

Figure rate_figure(std::string name, double value, std::string unit, double bound, double target) {
  const double share = bound > 0 ? value / bound : 0;
  return {.name = std::move(name),
          .value = value,
          .unit = std::move(unit),
          .bound = bound,
          .share = share,
          .target = target,
          .met = target == 0 || share >= target};
}

Figure time_figure(std::string name, double value, std::string unit, double bound, double factor) {
  const double share = value > 0 ? bound / value : 0;
  return {.name = std::move(name),
          .value = value,
          .unit = std::move(unit),
          .bound = bound,
          .share = share,
          .target = factor > 0 ? 1 / factor : 0,
          .met = factor == 0 || value <= factor * bound};
}

Figure limit_figure(std::string name, double value, std::string unit, double limit) {
  return {.name = std::move(name),
          .value = value,
          .unit = std::move(unit),
          .target = limit,
          .target_is_value = true,
          .met = value <= limit};
}

std::string machine_name() {
  std::string model = "unknown CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  const double gib = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(sysconf(_SC_PAGE_SIZE)) / (1 << 30);
  return fmt::format("{}, {} threads, {:.0f} GiB", model, std::thread::hardware_concurrency(), gib);
}

std::string table_header() {
  return fmt::format("{:<44} {:>10} {:<9} {:>10} {:>7} {:>9}", "", "figure", "", "bound", "share",
                     "target");
}

std::string table_line(const Figure& figure) {
  std::string target;
  if (figure.target_is_value)
    target = "<= " + number(figure.target);
  else if (figure.target > 0)
    target = fmt::format(">= {:.0f} %", figure.target * 100);
  const std::string share = figure.bound > 0 ? fmt::format("{:.0f} %", figure.share * 100) : "";
  return fmt::format("{:<44} {:>10} {:<9} {:>10} {:>7} {:>9}{}", figure.name, number(figure.value),
                     figure.unit, figure.bound > 0 ? number(figure.bound) : "", share, target,
                     figure.met ? "" : "  missed");
}

std::string to_json(const std::vector<Figure>& figures, const Origin& origin) {
  nlohmann::json list = nlohmann::json::array();
  for (const Figure& figure : figures) {
    list.push_back({{"name", figure.name},
                    {"value", figure.value},
                    {"unit", figure.unit},
                    {"bound", figure.bound},
                    {"share", figure.share},
                    {"target", figure.target},
                    {"met", figure.met},
                    {"build", origin.build},
                    {"machine", origin.machine}});
  }
  return list.dump(1) + "\n";
}

}  // namespace fathom::bench
