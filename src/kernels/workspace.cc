#include "kernels/workspace.h"

#include <algorithm>

#include "base/check.h"

namespace fathom::kernels {
namespace {
constexpr int64_t kAlignment = 64;
constexpr int64_t kBlockBytesMin = 1 << 20;
}  // namespace

int64_t Workspace::bytes_held() const {
  int64_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.bytes;
  return bytes;
}

Scratch::Scratch(Workspace& workspace)
    : workspace_(workspace), block_at_start_(workspace.current_) {
  if (!workspace.blocks_.empty()) used_at_start_ = workspace.blocks_[block_at_start_].used;
}

Scratch::~Scratch() {
  auto& blocks = workspace_.blocks_;
  for (size_t i = block_at_start_; i < blocks.size(); ++i) blocks[i].used = 0;
  if (!blocks.empty()) blocks[block_at_start_].used = used_at_start_;
  workspace_.current_ = block_at_start_;
}

std::byte* Scratch::take_bytes(int64_t bytes) {
  FATHOM_CHECK(bytes >= 0, "scratch of {} bytes", bytes);
  const int64_t wanted = std::max((bytes + kAlignment - 1) / kAlignment, int64_t{1}) * kAlignment;
  auto& blocks = workspace_.blocks_;
  size_t& current = workspace_.current_;
  while (current < blocks.size() && blocks[current].bytes - blocks[current].used < wanted) {
    ++current;
  }
  if (current == blocks.size()) {
    // Doubles, so that the number of blocks stays logarithmic in the largest step.
    const int64_t held = workspace_.bytes_held();
    const int64_t block_bytes = std::max({wanted, held, kBlockBytesMin});
    blocks.push_back(
        {std::unique_ptr<std::byte[]>(new std::byte[block_bytes + kAlignment]), block_bytes, 0});
  }
  auto& block = blocks[current];
  const auto address = reinterpret_cast<uintptr_t>(block.memory.get());
  std::byte* aligned = block.memory.get() + (kAlignment - address % kAlignment) % kAlignment;
  std::byte* taken = aligned + block.used;
  block.used += wanted;
  return taken;
}

}  // namespace fathom::kernels
