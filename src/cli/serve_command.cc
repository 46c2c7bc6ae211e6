// fathom serve: listens at once, loads the model meanwhile, drains on SIGTERM.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "cli/build_id.h"
#include "cli/command.h"
#include "cli/model_setup.h"
#include "server/api.h"
#include "server/http_server.h"

namespace fathom::cli {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kSignalCheck{100};
// Spent before the first answer, to know what drafts cost.
constexpr milliseconds kDraftTiming{2000};
// After the last answer: time for its last bytes to leave.
constexpr milliseconds kFlushTime{500};

milliseconds seconds_of(const Settings& settings, std::string_view name) {
  const double seconds = std::strtod(settings.text_or_standard(name).c_str(), nullptr);
  return milliseconds(static_cast<int64_t>(seconds * 1000));
}

Result<std::vector<std::string>> api_keys(const Settings& settings) {
  std::vector<std::string> keys = settings.list("--api-key");
  if (const auto path = settings.text("--api-key-file")) {
    FATHOM_ASSIGN(const std::vector<std::string> more, server::read_key_file(*path));
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

Result<server::Access> make_access(const Settings& settings) {
  server::AccessOptions options;
  FATHOM_ASSIGN(options.api_keys, api_keys(settings));
  const std::string host = settings.text_or_standard("--host");
  options.is_loopback_only = server::is_loopback_address(host);
  if (!options.is_loopback_only && options.api_keys.empty() && !settings.flag("--insecure-no-auth"))
    return error(
        Code::kInvalidArgument,
        "--host {} can be reached by other machines and there is no key; give --api-key-file "
        "or, on a network you trust, --insecure-no-auth",
        host);
  options.allowed_hosts = settings.list("--allowed-host");
  options.cors_origins = settings.list("--cors-origin");
  return server::Access::make(std::move(options));
}

server::ListenOptions listen_options(const Settings& settings) {
  server::ListenOptions options;
  options.host = settings.text_or_standard("--host");
  options.port = static_cast<int>(settings.integer_or_standard("--port"));
  options.limits.body_bytes_max = settings.integer_or_standard("--max-body-mib") << 20;
  options.limits.heartbeat = seconds_of(settings, "--sse-ping-interval");
  options.limits.head_time_max = seconds_of(settings, "--header-timeout");
  options.limits.connections_max = settings.integer_or_standard("--max-connections");
  options.limits.connections_per_peer_max =
      settings.integer_or_standard("--max-connections-per-peer");
  return options;
}

server::ApiOptions api_options(const Settings& settings) {
  server::ApiOptions options;
  std::filesystem::path directory(settings.text("--model").value_or(""));
  directory = directory.lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  options.model_name = settings.text("--alias").value_or(directory.filename().string());
  options.build_id = kBuildId;
  options.is_strict_about_model_names = settings.flag("--strict-model-names");
  options.default_max_tokens = settings.integer("--default-max-tokens");
  options.thinks_by_default = settings.text_or_standard("--default-thinking") == "on";
  options.default_temperature = settings.number("--temperature").value_or(1);
  options.default_top_p = settings.number("--top-p").value_or(1);
  const std::string field = settings.text_or_standard("--reasoning-field");
  if (field == "reasoning")
    options.reasoning_field = server::ReasoningField::kReasoning;
  else if (field == "both")
    options.reasoning_field = server::ReasoningField::kBoth;
  options.default_drafts = draft_wish(settings);
  options.body_bytes_max = settings.integer_or_standard("--max-body-mib") << 20;
  return options;
}

// Signals are taken one by one by the main thread, never in a handler.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);  // inherited by every thread made later
  }
  // The next signal, or 0 when none came in time.
  int next(milliseconds time) const {
    const timespec wait{time.count() / 1000, (time.count() % 1000) * 1'000'000};
    const int signal = sigtimedwait(&set_, nullptr, &wait);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_;
};

// The model, loaded by a thread of its own while health checks are answered.
class BackgroundLoad {
 public:
  BackgroundLoad(const Settings& settings, server::Api& api, ThreadPool& pool)
      : thread_([this, &settings, &api, &pool] { run(settings, api, pool); }) {}
  ~BackgroundLoad() { stop(); }
  BackgroundLoad(const BackgroundLoad&) = delete;
  BackgroundLoad& operator=(const BackgroundLoad&) = delete;

  // Breaks a load off; after it the api is not touched any more.
  void stop() {
    is_cancelled_ = true;
    if (thread_.joinable()) thread_.join();
  }

  bool has_ended() const { return has_ended_; }
  // After has_ended: null if it failed.
  Engine* engine() const { return engine_.get(); }
  const Status& status() const { return status_; }

 private:
  void run(const Settings& settings, server::Api& api, ThreadPool& pool) {
    auto loaded = load_from_settings(settings, /*needs_chat=*/true, pool, &is_cancelled_);
    if (loaded) {
      EngineOptions options = engine_options(settings);
      options.queue_max = settings.integer_or_standard("--max-queue");
      options.draft_timing = kDraftTiming;
      options.queue_timeout = seconds_of(settings, "--queue-timeout");
      options.stall_after = seconds_of(settings, "--stall-seconds");
      engine_ = std::make_unique<Engine>(std::move(*loaded), options);
      api.set_engine(engine_.get());
    } else {
      status_ = loaded.status();
    }
    has_ended_ = true;
  }

  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> has_ended_{false};
  Status status_;                   // written before has_ended_
  std::unique_ptr<Engine> engine_;  // written before has_ended_
  std::thread thread_;
};

// Running answers get their time; a second signal ends the program at once.
void drain(server::Api& api, Engine* engine, const Signals& signals, milliseconds time) {
  api.begin_drain();
  if (!engine) return;
  log(LogLevel::kInfo, "draining: running answers have {} s", time.count() / 1000);
  const auto end = std::chrono::steady_clock::now() + time;
  while (!engine->wait_until_idle(0ms) && std::chrono::steady_clock::now() < end)
    if (const int signal = signals.next(kSignalCheck); signal == SIGTERM || signal == SIGINT)
      std::_Exit(kExitInterrupted);
  engine->cancel_all();
  engine->wait_until_idle(5000ms);
  signals.next(kFlushTime);
}

void reread_keys(const Settings& settings, server::Api& api) {
  auto access = make_access(settings);
  if (!access)
    return log(LogLevel::kError, "keys stay as they were: {}", access.status().message());
  api.set_access(std::move(*access));
  log(LogLevel::kInfo, "keys read again");
}

}  // namespace

int serve_command(const Settings& settings) {
  for (const Status& status : {check_model_given(settings),
                               server::check_listen_address(settings.text_or_standard("--host"))})
    if (!status.is_ok()) return report(status), kExitUsage;
  const Signals signals;
  auto access = make_access(settings);
  if (!access) return report(access.status());

  ThreadPool pool(thread_count(settings));
  std::unique_ptr<BackgroundLoad> load;  // outlives the api's use of its engine
  server::Api api(api_options(settings), std::move(*access));
  auto http = server::HttpServer::start(listen_options(settings), api);
  if (!http) return report(http.status());
  const std::string host = settings.text_or_standard("--host");
  std::printf("listening on http://%s:%d\n",
              host.find(':') == std::string::npos ? host.c_str() : ("[" + host + "]").c_str(),
              (*http)->port());
  std::fflush(stdout);

  load = std::make_unique<BackgroundLoad>(settings, api, pool);
  bool is_announced = false;
  while (true) {
    const int signal = signals.next(kSignalCheck);
    if (signal == SIGHUP) reread_keys(settings, api);
    if (signal == SIGTERM || signal == SIGINT) break;
    if (!load->has_ended() || is_announced) continue;
    if (!load->engine()) {
      (*http).reset();
      return report(load->status());
    }
    is_announced = true;
    log(LogLevel::kInfo, "ready: {} with a context of {} tokens", load->engine()->loaded().name,
        load->engine()->context_tokens());
  }
  drain(api, load->has_ended() ? load->engine() : nullptr, signals,
        seconds_of(settings, "--drain-seconds"));
  load->stop();
  (*http).reset();  // before the api and the engine that its requests use
  return 0;
}

}  // namespace fathom::cli
