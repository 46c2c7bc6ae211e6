#include "base/thread_pool.h"

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fathom {
namespace {

// A pause takes 20 to 60 ns, so this is some 50 us: longer than the gap between two jobs of one
// token, shorter than anything a person or a battery notices.
constexpr int kSpinsBeforeSleep = 1500;
// A caller that waits for the others' last items: longer than that, and the core is wanted
// elsewhere (more threads than cores).
constexpr int kSpinsBeforeYield = 1000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

bool is_open(uint32_t phase) {
  return phase % 2 == 1;
}

}  // namespace

ThreadPool::ThreadPool(int thread_count) {
  FATHOM_CHECK(thread_count >= 1, "thread_count is {}", thread_count);
  for (int thread = 1; thread < thread_count; ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  is_stopping_ = true;
  phase_ += 2;  // another value, so that sleepers look
  phase_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t count, const Call& call) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int64_t index = 0; index < count; ++index) call.invoke(call.body, index, 0);
    return;
  }
  call_ = call;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  phase_.fetch_add(1);  // open
  phase_.notify_all();  // no system call when nobody sleeps
  take_items(0);
  // Closed before the workers are counted: with both sides sequentially consistent, a worker that
  // this misses sees the job closed and touches nothing of it.
  phase_.fetch_add(1);
  for (int spin = 0; inside_.load() > 0; ++spin) {
    if (spin < kSpinsBeforeYield)
      pause();
    else
      std::this_thread::yield();
  }
}

void ThreadPool::take_items(int thread) {
  for (int64_t index; (index = next_.fetch_add(1, std::memory_order_relaxed)) < count_;)
    call_.invoke(call_.body, index, thread);
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (!is_stopping_) {
    uint32_t phase = phase_.load();
    for (int spin = 0; phase == seen && spin < kSpinsBeforeSleep; ++spin) {
      pause();
      phase = phase_.load();
    }
    if (phase == seen) {
      phase_.wait(seen);
      continue;
    }
    seen = phase;
    if (!is_open(phase)) continue;
    inside_.fetch_add(1);
    if (phase_.load() == phase) take_items(thread);
    inside_.fetch_sub(1);
  }
}

}  // namespace fathom
