// Writes a safetensors file: taps of `verify` and the damaged checkpoints of tests.
// Tensors are sorted so that each lies on a multiple of its element size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace fathom {

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // dtype size times the product of shape; the caller's memory
};

// Writes to `path` + ".part" and renames, so that a file under its final name is complete.
// kInvalidArgument: a name twice, or data whose size does not fit its shape. kDataLoss: disk
// errors.
Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors);

}  // namespace fathom
