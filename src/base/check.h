// FATHOM_CHECK: a broken invariant is our own bug, so it prints where and why, then aborts.
// Never for bad files or requests: those return a Status (base/status.h).
#pragma once

#include <fmt/format.h>

#include <string>

namespace fathom::internal {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace fathom::internal

// FATHOM_CHECK(rows == 4, "rows is {}", rows): message in fmt syntax; evaluated only on failure.
#define FATHOM_CHECK(condition, ...)                                   \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::fathom::internal::check_failed(__FILE__, __LINE__, #condition, \
                                       ::fmt::format(__VA_ARGS__));    \
  } while (false)
