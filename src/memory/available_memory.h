// How much memory this process may still fill, file pages included.
#pragma once

#include <cstdint>

namespace fathom {

// The kernel's estimate of what can be used without swapping, and what the process's control group
// (container) still allows, whichever is less. 0 when the system does not say.
int64_t available_memory_bytes();

}  // namespace fathom
