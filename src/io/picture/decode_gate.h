// How many pictures may be decoded at once, and with how much memory between them, whoever asks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/status.h"

namespace fathom {

// Thread safe. Invariant: passes held <= decoders_max, and their bytes add up to <= bytes_max.
class DecodeGate {
 public:
  // A place inside; given back when destroyed. The gate must outlive it.
  class Pass {
   public:
    Pass(Pass&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), bytes_(other.bytes_) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave(bytes_);
    }

   private:
    friend class DecodeGate;
    Pass(DecodeGate* gate, int64_t bytes) : gate_(gate), bytes_(bytes) {}
    DecodeGate* gate_;
    int64_t bytes_;
  };

  DecodeGate(int decoders_max, int64_t bytes_max)
      : decoders_max_(decoders_max), bytes_max_(bytes_max) {}

  // Waits until there is room for a decoder that holds `bytes`. kUnavailable when there is none by
  // `deadline`; kResourceExhausted when there never could be.
  Result<Pass> enter(int64_t bytes, std::chrono::steady_clock::time_point deadline);

 private:
  void leave(int64_t bytes);

  const int decoders_max_;
  const int64_t bytes_max_;
  std::mutex mu_;
  std::condition_variable left_;
  int decoders_ = 0;   // guarded by mu_
  int64_t bytes_ = 0;  // guarded by mu_
};

}  // namespace fathom
