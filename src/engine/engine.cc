#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"

namespace fathom {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kWatchInterval{100};

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

const char* name_of(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

}  // namespace

class Engine::Job {
 public:
  AnswerRequest request;
  std::shared_ptr<AnswerSink> sink;
  StopSignals signals;
  Clock::time_point queued_at;
  Clock::time_point cancelled_at;  // guarded by the engine's mutex; set with wants_stop
};

Engine::Place::~Place() {
  if (engine_) engine_->release_place();
}

Engine::Engine(LoadedModel loaded, const EngineOptions& options)
    : loaded_(std::move(loaded)), options_(options) {
  const int64_t model_max = loaded_.model->info().context_tokens_max;
  const int64_t wanted =
      options.context_tokens > 0 ? options.context_tokens : kContextTokensDefault;
  limits_ = {std::min(wanted, model_max), options.prefill_chunk_tokens};
  FATHOM_CHECK(limits_.context_tokens > 1 && limits_.prefill_chunk_tokens > 0,
               "a context of {} tokens, chunks of {}", limits_.context_tokens,
               limits_.prefill_chunk_tokens);
  last_step_ms_ = now_ms();
  engine_thread_ = std::thread([this] { run(); });
  watch_thread_ = std::thread([this] { watch(); });
}

Engine::~Engine() {
  {
    std::lock_guard lock(mu_);
    is_draining_ = true;
    is_stopping_ = true;
    // Nobody waits for a reusable state any more.
    if (running_) running_->signals.must_stop = true;
  }
  cancel_all();
  work_.notify_all();
  idle_.notify_all();
  engine_thread_.join();
  watch_thread_.join();
}

Result<Engine::Place> Engine::reserve() {
  std::lock_guard lock(mu_);
  if (is_draining_) return error(Code::kUnavailable, "the server is shutting down");
  const int64_t held = places_ + static_cast<int64_t>(queue_.size()) + (running_ ? 1 : 0);
  if (held > options_.queue_max)
    return error(Code::kResourceExhausted,
                 "the engine is busy and its queue of {} requests is full", options_.queue_max);
  ++places_;
  return Place(this);
}

void Engine::release_place() {
  std::lock_guard lock(mu_);
  --places_;
  idle_.notify_all();
}

int64_t Engine::retry_after_s() const {
  std::lock_guard lock(mu_);
  const double ahead = static_cast<double>(queue_.size()) + static_cast<double>(places_) + 1;
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(answer_seconds_mean_ * ahead)), 1, 60);
}

std::shared_ptr<Engine::Job> Engine::submit(Place place, AnswerRequest request,
                                            std::shared_ptr<AnswerSink> sink) {
  FATHOM_CHECK(expanded_prompt_tokens(request) < limits_.context_tokens,
               "a prompt of {} tokens was let through, the context holds {}",
               expanded_prompt_tokens(request), limits_.context_tokens);
  FATHOM_CHECK(!request.prompt.empty() && request.answer_tokens_max > 0,
               "an empty request was let through");
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  job->sink = std::move(sink);
  job->queued_at = Clock::now();
  bool is_refused = false;
  {
    std::lock_guard lock(mu_);
    --places_;
    place.engine_ = nullptr;
    is_refused = is_stopping_;
    if (!is_refused) queue_.push_back(job);
    if (!running_ && queue_.size() == 1) last_step_ms_ = now_ms();
  }
  if (is_refused) job->sink->on_error(error(Code::kUnavailable, "the server is shutting down"));
  work_.notify_one();
  return job;
}

void Engine::cancel(const std::shared_ptr<Job>& job) {
  {
    std::lock_guard lock(mu_);
    if (!job->signals.wants_stop.exchange(true)) job->cancelled_at = Clock::now();
    if (std::erase(queue_, job) == 0) return;  // it runs: the engine thread ends it
    idle_.notify_all();
  }
  job->sink->on_error(error(Code::kCancelled, "the request was cancelled while it waited"));
}

void Engine::cancel_all() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    std::lock_guard lock(mu_);
    jobs.assign(queue_.begin(), queue_.end());
    if (running_) jobs.push_back(running_);
  }
  for (const auto& job : jobs) cancel(job);
}

EngineStatus Engine::status() const {
  std::lock_guard lock(mu_);
  EngineStatus status{running_ ? 1 : 0, static_cast<int64_t>(queue_.size()) + places_, is_draining_,
                      false};
  const bool has_work = running_ || !queue_.empty();
  status.is_stalled = has_work && now_ms() - last_step_ms_ > options_.stall_after.count();
  return status;
}

void Engine::stop_admission() {
  std::lock_guard lock(mu_);
  is_draining_ = true;
}

bool Engine::wait_until_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mu_);
  return idle_.wait_for(lock, timeout, [&] { return !running_ && queue_.empty() && places_ == 0; });
}

std::vector<DraftTally> Engine::draft_tallies() const {
  std::lock_guard lock(mu_);
  return draft_tallies_;
}

void Engine::time_drafts() {
  const StepCosts costs = measure_step_costs(*loaded_.model, options_.draft_timing);
  if (costs.step.empty()) return;
  log(LogLevel::kDebug, "a step of 1 row takes {:.3f} ms, of {} rows {:.3f} ms, drafts {:.3f} ms",
      costs.step.front(), costs.step.size(), costs.step.back(), costs.draft);
  memory_.planner.emplace(costs, /*follows_clock=*/true);
}

void Engine::run() {
  if (options_.draft_timing.count() > 0) time_drafts();
  std::unique_lock lock(mu_);
  while (true) {
    work_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
    if (is_stopping_) return;
    running_ = std::move(queue_.front());
    queue_.pop_front();
    const std::shared_ptr<Job> job = running_;
    last_step_ms_ = now_ms();
    lock.unlock();

    const auto start = Clock::now();
    answer(*job);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

    lock.lock();
    answer_seconds_mean_ += 0.2 * (seconds - answer_seconds_mean_);
    running_.reset();
    idle_.notify_all();
  }
}

void Engine::answer(Job& job) {
  const double queue_ms =
      std::chrono::duration<double, std::milli>(Clock::now() - job.queued_at).count();
  Generation generation(loaded_, job.request, *job.sink, job.signals, memory_, limits_,
                        [this] { last_step_ms_ = now_ms(); });
  const Result<AnswerSummary> result = generation.run(queue_ms);
  if (!result) {
    const Status status = result.status();
    log(status.code() == Code::kCancelled ? LogLevel::kInfo : LogLevel::kError,
        "{}: {} after {} prompt tokens: {}", job.request.id, code_name(status.code()),
        expanded_prompt_tokens(job.request), status.message());
    return job.sink->on_error(status);
  }
  {
    std::lock_guard lock(mu_);
    draft_tallies_.resize(result->drafts.size());
    for (size_t i = 0; i < result->drafts.size(); ++i) {
      draft_tallies_[i].judged += result->drafts[i].judged;
      draft_tallies_[i].accepted += result->drafts[i].accepted;
    }
  }
  const AnswerUsage& usage = result->usage;
  const AnswerTimings& timings = result->timings;
  log(LogLevel::kInfo,
      "{}: {} prompt tokens ({} reused, {} of pictures), {} answered, {}, seed {}; queue {:.0f} "
      "ms, "
      "pictures {:.0f} ms, prefill {:.0f} ms, decode {:.0f} ms",
      job.request.id, usage.prompt_tokens, usage.cached_tokens, usage.image_tokens,
      usage.completion_tokens, name_of(result->reason), job.request.sampling.seed, timings.queue_ms,
      timings.picture_ms, timings.prefill_ms, timings.decode_ms);
  job.sink->on_done(*result);
}

void Engine::watch() {
  std::unique_lock lock(mu_);
  while (!is_stopping_) {
    if (queue_.empty() && !running_)
      idle_.wait_for(lock, std::chrono::seconds(1));
    else
      idle_.wait_for(lock, kWatchInterval);
    watch_once(lock);
  }
}

void Engine::watch_once(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  if (running_ && running_->signals.wants_stop && now - running_->cancelled_at > kStepBreakMs)
    running_->signals.must_stop = true;
  if (options_.queue_timeout.count() == 0) return;
  // The queue is in order of arrival, so the front waits longest.
  while (!queue_.empty() && now - queue_.front()->queued_at > options_.queue_timeout) {
    const std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job->sink->on_error(error(Code::kDeadlineExceeded, "waited {} s in the queue for the engine",
                              options_.queue_timeout.count() / 1000));
    lock.lock();
  }
}

}  // namespace fathom
