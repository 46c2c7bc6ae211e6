#include "server/worker_pool.h"

#include <utility>

namespace fathom::server {

WorkerPool::WorkerPool(int thread_count) {
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mu_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::post(std::function<void()> work) {
  {
    std::lock_guard lock(mu_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void WorkerPool::run() {
  std::unique_lock lock(mu_);
  while (true) {
    wake_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
    if (is_stopping_) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace fathom::server
