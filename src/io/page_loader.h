// Brings ranges of mapped files into memory at the speed of the disk: large reads, asked for ahead,
// in file order, by a few threads. After it, touching those pages costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "io/mapped_file.h"

namespace fathom {

struct FileRange {
  const MappedFile* file = nullptr;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct LoadProgress {
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
  double seconds = 0;  // since the load began
};

struct LoadOptions {
  int thread_count = 2;  // readers
  std::function<void(const LoadProgress&)> progress =
      nullptr;                                // about ten times a second, and at the end
  const std::atomic<bool>* cancel = nullptr;  // raised by another thread: kCancelled
};

// `progress` is called from the calling thread. kDataLoss names the file that could not be read or
// has become shorter since it was opened.
Status load_pages(std::span<const FileRange> ranges, const LoadOptions& options);

// The same, but hands each piece to `visit` once it is in memory and then gives its pages up, so
// that a file larger than memory can be read whole. `range` is the index into `ranges`; pieces
// begin at multiples of 8 MiB within it. Called from several reader threads at once.
using PageVisitor = std::function<void(size_t range, const FileRange& piece)>;
Status visit_pages(std::span<const FileRange> ranges, const LoadOptions& options,
                   const PageVisitor& visit);

// Sorts by file and offset and joins ranges with less than `gap_bytes_max` between them: reading
// over a small gap is faster than stopping for it.
std::vector<FileRange> merge_ranges(std::vector<FileRange> ranges, int64_t gap_bytes_max);

}  // namespace fathom
