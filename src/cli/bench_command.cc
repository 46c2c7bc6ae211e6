// fathom bench: the table as it is measured, and its JSON forms.
#include <cstdio>
#include <utility>

#include "bench/bench.h"
#include "cli/build_id.h"
#include "cli/command.h"
#include "cli/model_setup.h"

namespace fathom::cli {

int bench_command(const Settings& settings) {
  bench::BenchOptions options;
  options.names = settings.positional();
  options.model_directory = settings.text("--model").value_or("");
  options.isa = settings.text("--isa").value_or("");
  options.threads = thread_count(settings);
  options.build = kBuildId;
  options.print = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  const auto figures = bench::run_bench(options);
  if (!figures) return report(figures.status());

  const bench::Origin origin{kBuildId, bench::machine_name()};
  if (const auto path = settings.text("--json")) {
    const Status status = bench::write_json(*figures, origin, *path);
    if (!status.is_ok()) return report(status);
  }
  if (settings.flag("--record")) {
    const std::string path = bench::history_path("bench/history", origin);
    const Status status = bench::write_json(*figures, origin, path);
    if (!status.is_ok()) return report(status);
    std::fprintf(stderr, "kept in %s\n", path.c_str());
  }
  return 0;
}

}  // namespace fathom::cli
