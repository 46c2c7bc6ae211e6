// `fathom bench`: measures this machine's ceilings, then each named benchmark beside its bound.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/figure.h"

namespace fathom::bench {

struct BenchOptions {
  std::vector<std::string> names;  // of bench_names(); empty: all that need no missing model
  std::string model_directory;     // for load, decode, prefill, first-token, server
  std::string isa;                 // empty: the best
  int threads = 0;                 // 0: as many as the machine has
  std::string build;               // build id for the JSON form
  // Called with each line of the table as it is known; a line has no newline at its end.
  std::function<void(const std::string& line)> print;
};

// "gemv", "gemm", "attention", "vision", ...: what can be named.
std::vector<std::string> bench_names();

// kInvalidArgument for an unknown name, or one that needs a model directory when none was given.
Result<std::vector<Figure>> run_bench(const BenchOptions& options);

// Writes the JSON form of figure.h.
Status write_json(const std::vector<Figure>& figures, const Origin& origin,
                  const std::string& path);
// DIRECTORY/DATE-BUILD.json
std::string history_path(const std::string& directory, const Origin& origin);

}  // namespace fathom::bench
