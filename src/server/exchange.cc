#include "server/internal/exchange.h"

#include <utility>

namespace fathom::server::internal {

Exchange::Exchange(int64_t unsent_bytes_max, std::function<void()> wake)
    : unsent_bytes_max_(unsent_bytes_max), wake_(std::move(wake)) {}

template <typename F>
void Exchange::change(F&& f) {
  std::lock_guard lock(mu_);
  if (is_gone_ || has_ended_) return;
  f();
  wake_();  // under the lock: after mark_gone nobody touches the connection's executor
}

// The callback may hold what holds this exchange, so it goes with the answer's end: set a moment
// after a quick answer cleared it, it would keep both for ever.
template <typename F>
void Exchange::finish(F&& f) {
  std::function<void()> dropped;  // destroyed after the lock is free
  change([&] {
    f();
    has_ended_ = true;
    dropped = std::exchange(on_gone_, nullptr);
  });
}

void Exchange::send(HttpResponse response) {
  finish([&] { out_.response = std::move(response); });
}

void Exchange::begin_stream() {
  change([&] { out_.begins_stream = true; });
}

void Exchange::write(std::string bytes) {
  std::function<void()> callback;
  change([&] {
    if (out_.bytes.empty())
      out_.bytes = std::move(bytes);
    else
      out_.bytes += bytes;
    if (static_cast<int64_t>(out_.bytes.size()) <= unsent_bytes_max_) return;
    is_overflowing_ = true;
    is_gone_ = true;
    out_.bytes.clear();
    callback = std::exchange(on_gone_, nullptr);
  });
  if (callback) callback();
}

void Exchange::end_stream() {
  finish([&] { out_.is_end = true; });
}

void Exchange::on_gone(std::function<void()> callback) {
  {
    std::lock_guard lock(mu_);
    if (has_ended_) callback = nullptr;  // too late to matter
    if (!is_gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  if (callback) callback();
}

Exchange::Outgoing Exchange::take() {
  std::lock_guard lock(mu_);
  return std::exchange(out_, {});
}

void Exchange::mark_gone() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mu_);
    if (is_gone_) return;
    is_gone_ = true;
    callback = std::exchange(on_gone_, nullptr);
  }
  if (callback) callback();
}

bool Exchange::is_overflowing() const {
  std::lock_guard lock(mu_);
  return is_overflowing_;
}

}  // namespace fathom::server::internal
