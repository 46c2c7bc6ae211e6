// The element types of checkpoints and goldens, with safetensors' spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fathom {

enum class DType { kF32, kBF16, kF8E4M3, kF8E8M0, kI8, kU8, kI32, kI64, kF16, kF64, kBool };

// "F32", "BF16", "F8_E4M3", "F8_E8M0", "I8", "U8", "I32", "I64", "F16", "F64", "BOOL".
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
int64_t dtype_bytes(DType dtype);

}  // namespace fathom
