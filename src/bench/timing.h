// Clocks of the benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace fathom::bench {

template <typename Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The shortest of `repeats` runs: interruptions only ever add.
template <typename Body>
double best_seconds(int repeats, const Body& body) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) best = std::min(best, seconds_of(body));
  return best;
}

}  // namespace fathom::bench
