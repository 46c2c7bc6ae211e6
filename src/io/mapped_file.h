// A file mapped read-only, whole. Weights are used straight from here; nothing is copied.
// The size is taken once, at open. If another program shortens the file afterwards, touching the
// lost pages raises SIGBUS, which no error return can carry; io/mapping_fault.h says what happens
// then. Replacing a file by rename is safe, because the descriptor stays open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace fathom {

class MappedFile {
 public:
  // kNotFound when there is no such file, kDataLoss when it is not a regular file or can't be read.
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  // The last part of the path, for messages.
  std::string name() const { return path_.substr(path_.find_last_of('/') + 1); }
  int64_t bytes() const { return bytes_; }
  std::span<const std::byte> all() const { return {data_, static_cast<size_t>(bytes_)}; }

  // Whether touching a page reads its neighbours from the disk as well (megabytes, on some disks).
  // A file begins without: headers and small tensors lie scattered, and will_need() asks for
  // exactly what is wanted.
  void read_neighbours(bool is_wanted) const;

  // Asks the kernel to start reading a range of some mapping, without waiting for it. Advice:
  // failures are ignored.
  static void will_need(const void* data, int64_t bytes);

 private:
  MappedFile() = default;

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;  // null when the file is empty
  int64_t bytes_ = 0;
};

}  // namespace fathom
