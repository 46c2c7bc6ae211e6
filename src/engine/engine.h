// The engine: a bounded queue of requests and the one thread that answers them, one at a time.
// Every method may be called from any thread.
//
//   reserve ─► Place ─submit─► Queued ─(engine thread)─► Running ─► done or error
//                │ destroyed       │ cancel, queue_timeout   │ cancel: after this step, at most
//                ▼                 ▼                         ▼ kStepBreakMs later inside a step
//              free              free                       free
//
// Invariants: (1) places, queued and running together are at most 1 + queue_max; (2) each submitted
// request gets exactly one on_done or on_error; (3) only the engine thread touches the model's
// sequences and the prefix cache; (4) after stop_admission no place is given.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/answer.h"
#include "engine/generation.h"
#include "engine/loaded_model.h"

namespace fathom {

struct EngineOptions {
  int64_t context_tokens = 0;          // 0: what the model holds, at most kContextTokensDefault
  int64_t queue_max = 64;              // requests that wait
  int64_t prefill_chunk_tokens = 512;  // rows of one prefill step
  std::chrono::milliseconds queue_timeout{600'000};  // 0: none
  std::chrono::milliseconds stall_after{300'000};    // no step for so long with work: stalled
  // Time to measure what drafts cost, before the first answer; 0: they are planned by the weights
  // that they read.
  std::chrono::milliseconds draft_timing{0};
};

inline constexpr int64_t kContextTokensDefault = 65536;
// A cancelled answer may finish its step, which keeps its state for a retry, if that is soon.
inline constexpr std::chrono::milliseconds kStepBreakMs{700};

struct EngineStatus {
  int64_t running = 0;
  int64_t waiting = 0;  // queued, and places not submitted yet
  bool is_draining = false;
  bool is_stalled = false;
};

class Engine {
 public:
  class Job;

  // A place in the queue: taken before the costly part of checking a request (picture decoding), so
  // that work is only spent on what will be answered. Free again when destroyed without submit.
  class Place {
   public:
    Place(Place&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class Engine;
    explicit Place(Engine* engine) : engine_(engine) {}
    Engine* engine_;
  };

  Engine(LoadedModel loaded, const EngineOptions& options);
  ~Engine();  // cancels everything
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const LoadedModel& loaded() const { return loaded_; }
  int64_t context_tokens() const { return limits_.context_tokens; }

  // kResourceExhausted: the queue is full; kUnavailable: shutting down.
  Result<Place> reserve();
  // Seconds after which a refused client may find a place, 1..60.
  int64_t retry_after_s() const;

  // The prompt must leave room for one token (expanded_prompt_tokens < context_tokens).
  std::shared_ptr<Job> submit(Place place, AnswerRequest request, std::shared_ptr<AnswerSink> sink);
  void cancel(const std::shared_ptr<Job>& job);

  EngineStatus status() const;
  // Drafts of all answers so far, by place in a step; empty without a drafter.
  std::vector<DraftTally> draft_tallies() const;
  void stop_admission();
  bool wait_until_idle(std::chrono::milliseconds timeout);  // true: nothing runs or waits
  void cancel_all();

 private:
  void run();    // engine thread
  void watch();  // breaks off cancelled steps and ends requests that waited too long
  void watch_once(std::unique_lock<std::mutex>& lock);
  void answer(Job& job);
  void time_drafts();
  void release_place();

  LoadedModel loaded_;
  const EngineOptions options_;
  GenerationLimits limits_;
  GenerationMemory memory_;  // engine thread only
  std::atomic<int64_t> last_step_ms_{0};

  mutable std::mutex mu_;
  std::condition_variable work_;            // something was queued, or stop
  std::condition_variable idle_;            // something ended, or stop
  std::deque<std::shared_ptr<Job>> queue_;  // guarded by mu_
  std::shared_ptr<Job> running_;            // guarded by mu_
  int64_t places_ = 0;                      // guarded by mu_; reserved, not submitted
  bool is_draining_ = false;                // guarded by mu_
  bool is_stopping_ = false;                // guarded by mu_
  double answer_seconds_mean_ = 1;          // guarded by mu_; moving, for retry_after_s
  std::vector<DraftTally> draft_tallies_;   // guarded by mu_

  std::thread engine_thread_;
  std::thread watch_thread_;
};

}  // namespace fathom
