// Scratch memory of the ops: a stack that the caller owns, so that no op allocates once the largest
// step has been seen. Engine thread only; an op that runs on a pool takes its memory before it
// forks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fathom::kernels {

class Workspace {
 public:
  int64_t bytes_held() const;  // for the memory forecast

 private:
  friend class Scratch;
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    int64_t bytes = 0;
    int64_t used = 0;
  };
  std::vector<Block> blocks_;
  size_t current_ = 0;  // the block that serves the next take()
};

// One op's share of the workspace; everything taken is returned when it goes out of scope.
// Scratches nest like calls: only the innermost may take.
class Scratch {
 public:
  explicit Scratch(Workspace& workspace);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // `count` values of T, 64-byte aligned, not initialised; valid until this Scratch ends.
  template <typename T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  std::byte* take_bytes(int64_t bytes);

  Workspace& workspace_;
  size_t block_at_start_ = 0;
  int64_t used_at_start_ = 0;
};

}  // namespace fathom::kernels
