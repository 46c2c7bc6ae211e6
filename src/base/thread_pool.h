// A fixed set of worker threads that run kernels. One pool a process, made by cli and passed down.
// Which thread takes which index is not fixed, so work items must not depend on one another and
// results must not depend on who ran them (promise P2).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
  void parallel_for(int64_t count, const std::function<void(int64_t index, int thread)>& body);

 private:
  struct Job;
  void work(int thread);

  std::mutex mu_;
  std::condition_variable wake_;
  std::shared_ptr<Job> job_;  // guarded by mu_
  uint64_t generation_ = 0;   // guarded by mu_; counts jobs, so that a worker sees each once
  bool is_stopping_ = false;  // guarded by mu_
  std::vector<std::thread> workers_;
};

}  // namespace fathom
