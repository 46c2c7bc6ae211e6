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

void Exchange::send(HttpResponse response) {
  change([&] {
    out_.response = std::move(response);
    has_ended_ = true;
  });
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
  change([&] {
    out_.is_end = true;
    has_ended_ = true;
  });
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
