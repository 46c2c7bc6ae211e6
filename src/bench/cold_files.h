// The shards of a model directory, and how fast the disk gives them when nothing is cached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace fathom::bench {

class ColdFiles {
 public:
  // Every *.safetensors file in `directory`; an empty list if there is none.
  explicit ColdFiles(const std::string& directory);

  int64_t bytes() const { return bytes_; }
  // Makes the kernel forget the files. Nothing may have them mapped.
  Status drop_caches() const;
  // Seconds to read all of them in order, caches dropped before.
  Result<double> read_seconds() const;

 private:
  std::vector<std::string> paths_;
  int64_t bytes_ = 0;
};

}  // namespace fathom::bench
