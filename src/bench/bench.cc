#include "bench/bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/thread_pool.h"
#include "bench/ceilings.h"
#include "bench/kernel_bench.h"
#include "bench/model_bench.h"
#include "bench/server_bench.h"
#include "kernels/context.h"

namespace fathom::bench {
namespace {

using Figures = std::vector<Figure>;

struct Benchmark {
  std::string name;
  bool needs_model = false;
  std::function<Result<Figures>()> run;
};

std::vector<Benchmark> all_benchmarks(const BenchOptions& options, const kernels::Context& context,
                                      const Ceilings& ceilings) {
  const ModelBenchOptions model{
      .directory = options.model_directory, .isa = options.isa, .threads = ceilings.threads};
  return {
      {"gemv", false, [=, &context] { return Figures(bench_gemv(context, ceilings)); }},
      {"gemm", false, [=, &context] { return Figures(bench_gemm(context, ceilings)); }},
      {"attention", false, [=, &context] { return Figures(bench_attention(context, ceilings)); }},
      {"vision", false, [=, &context] { return bench_vision(context, ceilings); }},
      {"load", true, [=] { return bench_load(model, ceilings); }},
      {"decode", true, [=] { return bench_decode(model, ceilings); }},
      {"prefill", true, [=] { return bench_prefill(model, ceilings); }},
      {"first-token", true, [=] { return bench_first_token(model); }},
      {"server", true, [=] { return bench_server(model.directory); }},
  };
}

// Before anything is measured.
Status check_names(const BenchOptions& options, const std::vector<Benchmark>& known) {
  for (const std::string& name : options.names) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Benchmark& each) { return each.name == name; });
    if (found == known.end())
      return error(Code::kInvalidArgument, "there is no benchmark \"{}\"; choose from {}", name,
                   fmt::join(bench_names(), ", "));
    if (found->needs_model && options.model_directory.empty())
      return error(Code::kInvalidArgument, "bench {} needs --model DIR", name);
  }
  return {};
}

}  // namespace

std::vector<std::string> bench_names() {
  std::vector<std::string> names;
  ThreadPool pool(1);
  kernels::Workspace workspace;
  const kernels::Context context{pool, workspace};
  for (const Benchmark& benchmark : all_benchmarks({}, context, {}))
    names.push_back(benchmark.name);
  return names;
}

Result<Figures> run_bench(const BenchOptions& options) {
  FATHOM_ASSIGN(const kernels::Isa isa,
                options.isa.empty() ? kernels::choose_isa() : kernels::choose_isa(options.isa));
  const int threads = options.threads > 0
                          ? options.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ThreadPool pool(threads);
  kernels::Workspace workspace;
  const kernels::Context context{pool, workspace, isa};
  Ceilings ceilings{.threads = threads};
  FATHOM_TRY(check_names(options, all_benchmarks(options, context, ceilings)));

  Figures figures;
  const auto add = [&](const Figures& more) {
    for (const Figure& figure : more) {
      figures.push_back(figure);
      if (options.print) options.print(table_line(figure));
    }
  };
  if (options.print)
    options.print(
        fmt::format("{}; {}\n{}", machine_name(), kernels::describe_isa(isa), table_header()));
  ThreadPool one(1);
  add(ceiling_figures(measure_ceilings(one)));
  ceilings = measure_ceilings(pool);
  if (threads > 1) add(ceiling_figures(ceilings));

  for (const Benchmark& benchmark : all_benchmarks(options, context, ceilings)) {
    const bool is_named = std::find(options.names.begin(), options.names.end(), benchmark.name) !=
                          options.names.end();
    if (!is_named && !options.names.empty()) continue;
    if (benchmark.needs_model && options.model_directory.empty()) {
      if (options.print) options.print(fmt::format("{:<44} needs --model DIR", benchmark.name));
      continue;
    }
    Result<Figures> more = benchmark.run();
    if (!more) return more.status().with_context("bench " + benchmark.name);
    add(*more);
  }
  return figures;
}

Status write_json(const Figures& figures, const Origin& origin, const std::string& path) {
  std::ofstream file(path);
  file << to_json(figures, origin);
  file.close();
  if (!file)
    return error(Code::kInvalidArgument, "{} cannot be written; its folder must be there", path);
  return {};
}

std::string history_path(const std::string& directory, const Origin& origin) {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{}/{:%Y-%m-%d-%H%M%S}-{}.json", directory, fmt::gmtime(now), origin.build);
}

}  // namespace fathom::bench
