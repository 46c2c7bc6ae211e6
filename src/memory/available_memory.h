// How much memory this process may still fill, file pages included.
#pragma once

#include <cstdint>

namespace fathom {

// The kernel's estimate of what can be used without swapping, and what the process's control group
// (container) still allows, whichever is less. The largest number when the system does not say: a
// request is not refused for want of knowledge.
int64_t available_memory_bytes();

}  // namespace fathom
