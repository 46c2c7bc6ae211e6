#include "tensor/dtype.h"

#include <array>

namespace fathom {

namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<Row, 11> kRows = {{{DType::kF32, "F32", 4},
                                        {DType::kBF16, "BF16", 2},
                                        {DType::kF8E4M3, "F8_E4M3", 1},
                                        {DType::kF8E8M0, "F8_E8M0", 1},
                                        {DType::kI8, "I8", 1},
                                        {DType::kU8, "U8", 1},
                                        {DType::kI32, "I32", 4},
                                        {DType::kI64, "I64", 8},
                                        {DType::kF16, "F16", 2},
                                        {DType::kF64, "F64", 8},
                                        {DType::kBool, "BOOL", 1}}};

const Row& row(DType dtype) {
  return kRows[static_cast<size_t>(dtype)];
}

}  // namespace

std::string_view dtype_name(DType dtype) {
  return row(dtype).name;
}

int64_t dtype_bytes(DType dtype) {
  return row(dtype).bytes;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.dtype;
  return std::nullopt;
}

}  // namespace fathom
