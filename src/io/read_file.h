// A small file as text: configs and indices. Anything large is mapped (io/mapped_file.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace fathom {

// kNotFound when there is no such file; kDataLoss when it cannot be read, or has more than
// `bytes_max` bytes: then nothing of it is read.
Result<std::string> read_file(const std::string& path, int64_t bytes_max);

}  // namespace fathom
