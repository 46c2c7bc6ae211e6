#include "cli/model_setup.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

#include "engine/model_loader.h"

namespace fathom::cli {

namespace {

constexpr double kLineSeconds = 5;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Whole CPUs that a cgroup v2 quota leaves, or INT_MAX.
int quota_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  int64_t period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return INT32_MAX;
  return static_cast<int>(std::max<int64_t>(1, std::atoll(quota.c_str()) / period));
}

std::string home_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/fathom";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/fathom";
  return {};
}

}  // namespace

int default_thread_count() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  // Two threads of one core share its arithmetic units, so siblings count once.
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) {
      const std::string siblings = first_line(
          fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
      cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
    }
  return std::clamp(std::min(static_cast<int>(cores.size()), quota_cpus()), 1, 1024);
}

int thread_count(const Settings& settings) {
  const auto wanted = settings.integer("--threads");
  return wanted ? static_cast<int>(*wanted) : default_thread_count();
}

std::string cache_directory(const Settings& settings) {
  return settings.text("--cache-dir").value_or(home_cache());
}

ProgressLine::~ProgressLine() {
  if (has_open_line_) std::fputc('\n', stderr);
}

void ProgressLine::show(int64_t bytes_done, int64_t bytes_total, double seconds) {
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  const bool is_end = bytes_done == bytes_total;
  if (!is_terminal && seconds - last_shown_s_ < kLineSeconds && !(is_end && seconds > kLineSeconds))
    return;
  last_shown_s_ = seconds;
  const double rate = seconds > 0 ? static_cast<double>(bytes_done) / seconds : 0;
  const double remaining = rate > 0 ? static_cast<double>(bytes_total - bytes_done) / rate : 0;
  std::fprintf(stderr, "%s%s %.2f of %.2f GB, %.2f GB/s, %.0f s remaining%s",
               is_terminal ? "\r\033[K" : "", what_.c_str(), static_cast<double>(bytes_done) / 1e9,
               static_cast<double>(bytes_total) / 1e9, rate / 1e9, remaining,
               is_terminal ? "" : "\n");
  has_open_line_ = is_terminal;
}

Status check_model_given(const Settings& settings) {
  if (settings.text("--model")) return Status::ok();
  return error(Code::kInvalidArgument,
               "no model given; use --model DIR or the environment variable FATHOM_MODEL");
}

Result<LoadedModel> load_from_settings(const Settings& settings, bool needs_chat, ThreadPool& pool,
                                       const std::atomic<bool>* cancel) {
  FATHOM_TRY(check_model_given(settings));
  const std::string directory = *settings.text("--model");
  ProgressLine line("loading");
  LoadModelOptions options;
  options.directory = directory;
  options.policy = settings.text_or_standard("--policy");
  options.isa = settings.text("--isa").value_or("");
  options.cache_dir = cache_directory(settings);
  options.reads_weights = !settings.flag("--no-preload");
  options.needs_chat = needs_chat;
  options.cancel = cancel;
  options.progress = [&line](const LoadProgress& progress) {
    line.show(progress.bytes_done, progress.bytes_total, progress.seconds);
  };
  FATHOM_ASSIGN(LoadedModel loaded, load_model(options, pool));
  constexpr int64_t kContextTokensMin = 2;  // a prompt and an answer
  if (const int64_t context = loaded.model->info().context_tokens_max; context < kContextTokensMin)
    return error(Code::kUnsupported,
                 "{}: config.json gives max_position_embeddings {}, wanted at least {}: a prompt "
                 "and an answer do not fit",
                 directory, context, kContextTokensMin);
  return loaded;
}

DraftWish draft_wish(const Settings& settings) {
  return parse_draft_wish(settings.text_or_standard("--draft")).value();
}

EngineOptions engine_options(const Settings& settings) {
  EngineOptions options;
  options.context_tokens = settings.integer_or_standard("--ctx-size");
  options.prefill_chunk_tokens = settings.integer_or_standard("--prefill-chunk");
  return options;
}

}  // namespace fathom::cli
