#include "base/thread_pool.h"

#include <atomic>

#include "base/check.h"

namespace fathom {

// Shared by pointer: a worker that wakes late finds no index left and touches nothing else.
struct ThreadPool::Job {
  const std::function<void(int64_t, int)>* body;
  int64_t count;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};

  void run(int thread) {
    for (int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      (*body)(index, thread);
      done.fetch_add(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(int thread_count) {
  FATHOM_CHECK(thread_count >= 1, "thread_count is {}", thread_count);
  for (int thread = 1; thread < thread_count; ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mu_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t, int)>& body) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int64_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  auto job = std::make_shared<Job>();
  job->body = &body;
  job->count = count;
  {
    std::lock_guard lock(mu_);
    job_ = job;
    ++generation_;
  }
  wake_.notify_all();
  job->run(0);
  // The rest is already running on a worker: its tail is short, so yield instead of sleeping.
  while (job->done.load(std::memory_order_acquire) < count) std::this_thread::yield();
}

void ThreadPool::work(int thread) {
  // Decode issues a job every few microseconds; a futex wake costs more than that. Spin briefly.
  constexpr int kSpinsMax = 2000;
  uint64_t seen = 0;
  while (true) {
    std::shared_ptr<Job> job;
    for (int spin = 0; spin < kSpinsMax && !job; ++spin) {
      std::unique_lock lock(mu_, std::try_to_lock);
      if (lock.owns_lock()) {
        if (is_stopping_) return;
        if (generation_ != seen) {
          seen = generation_;
          job = job_;
        }
      }
      if (!job) std::this_thread::yield();
    }
    if (!job) {
      std::unique_lock lock(mu_);
      wake_.wait(lock, [&] { return is_stopping_ || generation_ != seen; });
      if (is_stopping_) return;
      seen = generation_;
      job = job_;
    }
    job->run(thread);
  }
}

}  // namespace fathom
