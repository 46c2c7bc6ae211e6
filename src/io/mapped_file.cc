#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/mapping_fault.h"

namespace fathom {

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  std::unique_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  // Without waiting: a pipe would keep us until somebody writes to it.
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->descriptor_ < 0) {
    const int reason = errno;
    return error(reason == ENOENT ? Code::kNotFound : Code::kDataLoss, "{}: {}", path,
                 std::strerror(reason));
  }
  struct stat info = {};
  if (::fstat(file->descriptor_, &info) != 0)
    return error(Code::kDataLoss, "{}: {}", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return error(Code::kDataLoss, "{}: wanted a regular file, found a {}", path,
                 S_ISDIR(info.st_mode) ? "folder" : "device or pipe");
  file->bytes_ = info.st_size;
  if (file->bytes_ == 0) return file;

  void* data = ::mmap(nullptr, static_cast<size_t>(file->bytes_), PROT_READ, MAP_SHARED,
                      file->descriptor_, 0);
  if (data == MAP_FAILED)
    return error(Code::kResourceExhausted, "{}: cannot map {} bytes: {}", path, file->bytes_,
                 std::strerror(errno));
  file->data_ = static_cast<const std::byte*>(data);
  file->read_neighbours(false);
  remember_mapping(file->all(), path);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    forget_mapping(data_);
    ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(bytes_));
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MappedFile::read_neighbours(bool is_wanted) const {
  if (data_ == nullptr) return;
  ::madvise(const_cast<std::byte*>(data_), static_cast<size_t>(bytes_),
            is_wanted ? MADV_NORMAL : MADV_RANDOM);
}

void MappedFile::will_need(const void* data, int64_t bytes) {
  if (bytes <= 0) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = begin / page * page;
  ::madvise(reinterpret_cast<void*>(first), begin + static_cast<uintptr_t>(bytes) - first,
            MADV_WILLNEED);
}

}  // namespace fathom
