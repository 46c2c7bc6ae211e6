// A fixed set of worker threads that run kernels. One pool a process, made by cli and passed down.
// Which thread takes which index is not fixed, so work items must not depend on one another and
// results must not depend on who ran them (promise P2).
//
// Decode issues a job every few microseconds, and waking a sleeping thread costs more than such a
// job. So a job is handed over through atomics alone, without lock or allocation, and a worker that
// ran out of work spins for a moment before it sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace fathom {

class ThreadPool {
 public:
  // `thread_count` >= 1 includes the calling thread: 1 starts no worker.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(index, thread) for index in [0, count), each once, and returns when all are done.
  // `thread` is in [0, thread_count()), distinct among calls that run at the same time: an index
  // into per-thread scratch. Only one thread may call at a time; body must not call back in.
  template <typename Body>
  void parallel_for(int64_t count, const Body& body) {
    run(count, {&body, [](const void* b, int64_t index, int thread) {
                  (*static_cast<const Body*>(b))(index, thread);
                }});
  }

 private:
  struct Call {
    const void* body;
    void (*invoke)(const void* body, int64_t index, int thread);
  };

  void run(int64_t count, const Call& call);
  void work(int thread);
  void take_items(int thread);

  // The job: written by the caller while nobody is inside, then published by phase_.
  Call call_{};
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};

  // Odd while a job is open, even otherwise; a worker joins each odd value at most once.
  std::atomic<uint32_t> phase_{0};
  std::atomic<int32_t> inside_{0};  // workers that may be touching the job
  std::atomic<bool> is_stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace fathom
