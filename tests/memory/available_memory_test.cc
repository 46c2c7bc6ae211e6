#include "memory/available_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace fathom {
namespace {

TEST(AvailableMemory, IsBetweenNothingAndWhatTheMachineHas) {
  const int64_t machine_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), machine_bytes);
}

}  // namespace
}  // namespace fathom
