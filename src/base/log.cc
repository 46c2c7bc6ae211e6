#include "base/log.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace fathom {

namespace {
std::atomic<LogLevel> g_level{LogLevel::kInfo};
}

void set_log_level(LogLevel level) {
  g_level = level;
}

LogLevel log_level() {
  return g_level;
}

void log_line(LogLevel level, const std::string& message) {
  static constexpr char kLetters[] = "EWID";
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const int64_t ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
  const std::string line =
      fmt::format("{}.{:03}Z {} {}\n", stamp, ms, kLetters[static_cast<int>(level)], message);
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call: lines of threads do not mix
}

}  // namespace fathom
