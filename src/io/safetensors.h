// Reads a safetensors file: header validated whole before anything uses it, data mapped.
// Layout: u64 little-endian header length, JSON header, data without a gap up to the end of file.
// Model shards and golden files both come through here; which tensors there should be, and of what
// shape, is the caller's knowledge.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "io/mapped_file.h"
#include "tensor/dtype.h"

namespace fathom {

// Bounds on what a header may ask for; beyond them a file is refused, not read.
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;
inline constexpr int kSafetensorsDimsMax = 8;

struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // from the start of the file, not of the data
  int64_t bytes = 0;   // dtype size times the product of shape
};

// "[24, 20480]", for messages.
std::string shape_text(std::span<const int64_t> shape);

// Header of a file of `file_bytes` bytes whose first bytes are `head` (8 + header length of them at
// least, or the whole file). Entries come back sorted by offset; together they cover the file from
// the end of the header to its last byte exactly. Errors (kDataLoss) say tensor, wanted and found;
// the caller adds the file's name.
Result<std::vector<TensorEntry>> parse_safetensors_header(std::span<const std::byte> head,
                                                          int64_t file_bytes);

class SafetensorsFile {
 public:
  // Errors name the file. The data pages are not touched.
  static Result<std::unique_ptr<SafetensorsFile>> open(const std::string& path);

  const MappedFile& file() const { return *file_; }
  std::span<const TensorEntry> tensors() const { return tensors_; }  // by offset
  const TensorEntry* find(std::string_view name) const;              // null: not in this file
  const std::byte* data(const TensorEntry& entry) const {
    return file_->all().data() + entry.offset;
  }

  // The elements of tensor `name` as `T`; the tensor must exist with dtype `dtype`, and its data be
  // aligned for T (always so in files of our writer). For tests and goldens.
  template <typename T>
  Result<std::span<const T>> span_of(std::string_view name, DType dtype) const {
    FATHOM_ASSIGN(const TensorEntry* entry, require(name, dtype, alignof(T)));
    return std::span<const T>(reinterpret_cast<const T*>(data(*entry)),
                              static_cast<size_t>(entry->bytes) / sizeof(T));
  }

 private:
  SafetensorsFile() = default;
  Result<const TensorEntry*> require(std::string_view name, DType dtype, size_t alignment) const;

  std::unique_ptr<MappedFile> file_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string_view, const TensorEntry*> by_name_;  // keys live in tensors_
};

}  // namespace fathom
