// A few threads for the work of a request that may take milliseconds (JSON, tokenizing, decoding
// pictures), so that the network thread never waits for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fathom::server {

class WorkerPool {
 public:
  explicit WorkerPool(int thread_count);
  ~WorkerPool();  // work that has not begun is dropped

  // The number of jobs is bounded by the number of connections.
  void post(std::function<void()> work);

 private:
  void run();

  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;  // guarded by mu_
  bool is_stopping_ = false;                 // guarded by mu_
  std::vector<std::thread> threads_;
};

}  // namespace fathom::server
