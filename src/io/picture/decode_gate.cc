#include "io/picture/decode_gate.h"

namespace fathom {

Result<DecodeGate::Pass> DecodeGate::enter(int64_t bytes,
                                           std::chrono::steady_clock::time_point deadline) {
  if (bytes > bytes_max_) {
    return error(Code::kResourceExhausted,
                 "decoding needs {} bytes of memory, all pictures together may use {}", bytes,
                 bytes_max_);
  }
  std::unique_lock lock(mu_);
  const auto has_room = [&] { return decoders_ < decoders_max_ && bytes_ + bytes <= bytes_max_; };
  if (!left_.wait_until(lock, deadline, has_room)) {
    return error(Code::kUnavailable,
                 "{} pictures are being decoded and no place came free in time; try again",
                 decoders_);
  }
  ++decoders_;
  bytes_ += bytes;
  return Pass(this, bytes);
}

void DecodeGate::leave(int64_t bytes) {
  {
    const std::lock_guard lock(mu_);
    --decoders_;
    bytes_ -= bytes;
  }
  left_.notify_all();
}

}  // namespace fathom
