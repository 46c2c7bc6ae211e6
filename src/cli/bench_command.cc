// fathom bench: the table as it is measured, and its JSON forms.
#include <cstdio>
#include <filesystem>
#include <utility>

#include "bench/bench.h"
#include "cli/build_id.h"
#include "cli/command.h"
#include "cli/model_setup.h"

namespace fathom::cli {

namespace {

constexpr const char* kHistory = "bench/history";

Status check_folder_of(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code code;  // a folder that cannot be looked at is none
  if (std::filesystem::is_directory(folder, code)) return Status::ok();
  return error(Code::kInvalidArgument, "--json {}: there is no folder {}", path, folder.string());
}

}  // namespace

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
  const auto json_path = settings.text("--json");
  if (json_path) {  // known now, not after minutes of measuring
    const Status status = check_folder_of(*json_path);
    if (!status.is_ok()) return report(status), kExitUsage;
  }
  const auto figures = bench::run_bench(options);
  if (!figures) return report(figures.status());

  const bench::Origin origin{kBuildId, bench::machine_name()};
  if (json_path) {
    const Status status = bench::write_json(*figures, origin, *json_path);
    if (!status.is_ok()) return report(status);
  }
  if (settings.flag("--record")) {
    std::error_code code;  // a folder that cannot be made shows in the file
    std::filesystem::create_directories(kHistory, code);
    const std::string path = bench::history_path(kHistory, origin);
    const Status status = bench::write_json(*figures, origin, path);
    if (!status.is_ok()) return report(status);
    std::fprintf(stderr, "kept in %s\n", path.c_str());
  }
  return 0;
}

}  // namespace fathom::cli
