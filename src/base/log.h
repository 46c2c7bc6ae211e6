// One line per event on stderr, so that stdout stays the program's answer. Safe from any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace fathom {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// Process wide; kInfo at start. Set by cli from --log-level.
void set_log_level(LogLevel level);
LogLevel log_level();
void log_line(LogLevel level, const std::string& message);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fathom
