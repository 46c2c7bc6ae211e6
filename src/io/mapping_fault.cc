#include "io/mapping_fault.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>

namespace fathom {

namespace {

constexpr size_t kMappingsMax = 256;
constexpr size_t kPathMax = 512;

// A signal handler may not lock or allocate, so this is a plain table. `begin` is written last and
// cleared first: a slot with a begin is whole.
struct Slot {
  std::atomic<const std::byte*> begin = nullptr;
  std::atomic<bool> is_taken = false;
  size_t bytes = 0;
  std::array<char, kPathMax> path = {};
};

std::array<Slot, kMappingsMax>& slots() {
  static std::array<Slot, kMappingsMax> table;
  return table;
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  for (const Slot& slot : slots()) {
    const std::byte* begin = slot.begin.load(std::memory_order_acquire);
    if (begin == nullptr || address < begin || address >= begin + slot.bytes) continue;
    write_all("fathom: ");
    write_all(slot.path.data());
    write_all(
        ": the file became shorter while it was in use, or its disk failed; start again "
        "when it is whole\n");
    ::_exit(kMappingFaultExitCode);
  }
  ::signal(signal, SIG_DFL);  // the instruction runs again and ends the process
}

}  // namespace

void explain_mapping_faults() {
  slots();  // made here, not in the handler
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void remember_mapping(std::span<const std::byte> mapping, const std::string& path) {
  for (Slot& slot : slots()) {
    if (slot.is_taken.exchange(true)) continue;
    slot.bytes = mapping.size();
    const size_t length = std::min(path.size(), kPathMax - 1);
    std::memcpy(slot.path.data(), path.data(), length);
    slot.path[length] = '\0';
    slot.begin.store(mapping.data(), std::memory_order_release);
    return;
  }
}

void forget_mapping(const std::byte* begin) {
  for (Slot& slot : slots()) {
    if (slot.begin.load(std::memory_order_acquire) != begin) continue;
    slot.begin.store(nullptr, std::memory_order_release);
    slot.is_taken.store(false);
    return;
  }
}

}  // namespace fathom
