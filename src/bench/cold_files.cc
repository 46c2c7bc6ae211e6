#include "bench/cold_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "bench/timing.h"

namespace fathom::bench {
namespace {

constexpr size_t kReadBytes = 8 << 20;

// Calls body(fd) with the file open for reading.
template <typename Body>
Status with_file(const std::string& path, const Body& body) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error(Code::kNotFound, "{} cannot be opened: {}", path, strerror(errno));
  Status status = body(fd);
  close(fd);
  return status;
}

}  // namespace

ColdFiles::ColdFiles(const std::string& directory) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code)) {
    if (entry.path().extension() != ".safetensors") continue;
    paths_.push_back(entry.path().string());
    bytes_ += static_cast<int64_t>(entry.file_size(code));
  }
  std::sort(paths_.begin(), paths_.end());
}

Status ColdFiles::drop_caches() const {
  for (const std::string& path : paths_) {
    FATHOM_TRY(with_file(path, [&](int fd) {
      if (fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0) return Status();
      return error(Code::kUnsupported, "the cache of {} cannot be dropped", path);
    }));
  }
  return {};
}

Result<double> ColdFiles::read_seconds() const {
  FATHOM_TRY(drop_caches());
  std::vector<char> buffer(kReadBytes);
  Status status;
  const double seconds = seconds_of([&] {
    for (const std::string& path : paths_) {
      status = with_file(path, [&](int fd) {
        ssize_t count = 0;
        while ((count = read(fd, buffer.data(), buffer.size())) > 0) {
        }
        return count == 0 ? Status() : error(Code::kDataLoss, "{}: {}", path, strerror(errno));
      });
      if (!status) return;
    }
  });
  FATHOM_TRY(status);
  return seconds;
}

}  // namespace fathom::bench
