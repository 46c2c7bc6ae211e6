#include "memory/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace fathom {

namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// "MemAvailable:   123 kB" of /proc/meminfo.
int64_t machine_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  int64_t kilobytes = 0;
  std::string rest;
  while (info >> name >> kilobytes && std::getline(info, rest))
    if (name == "MemAvailable:") return kilobytes * 1024;
  return kUnknown;
}

// The value in a control-group file, or `absent` when there is none or it says "max".
int64_t group_value(const char* path, int64_t absent) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : absent;
}

// Version 2 groups as a container sees its own. File pages count as used but can be dropped, so
// they are not subtracted: only the limit itself is a bound.
int64_t group_bytes() {
  return group_value("/sys/fs/cgroup/memory.max", kUnknown);
}

}  // namespace

int64_t available_memory_bytes() {
  return std::min(machine_bytes(), group_bytes());
}

}  // namespace fathom
