#include "io/page_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older headers lack the name
#endif

namespace fathom {

namespace {

constexpr int64_t kChunkBytes = 8 << 20;
constexpr auto kReportEvery = std::chrono::milliseconds(100);

struct Chunk {
  FileRange range;
  size_t source = 0;  // index of the range it was cut from
};

// Maps the pages of a chunk that was asked for before; waits for the disk where it must.
Status populate(const FileRange& chunk) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(chunk.file->all().data() + chunk.offset);
  const uintptr_t first = begin / page * page;
  const size_t bytes = begin + static_cast<uintptr_t>(chunk.bytes) - first;
  while (::madvise(reinterpret_cast<void*>(first), bytes, MADV_POPULATE_READ) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) return {};  // an older kernel: the pages come in at first use
    return error(Code::kDataLoss,
                 "{}: cannot read {} bytes at {}: {}: the disk fails, or the file became shorter "
                 "after it was opened",
                 chunk.file->path(), chunk.bytes, chunk.offset, std::strerror(errno));
  }
  return {};
}

// Unmaps the whole pages of a chunk; the page cache may keep them, the process does not.
void give_up(const FileRange& chunk) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(chunk.file->all().data() + chunk.offset);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + static_cast<uintptr_t>(chunk.bytes)) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::vector<Chunk> cut_into_chunks(std::span<const FileRange> ranges) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < ranges.size(); ++i)
    for (int64_t at = 0; at < ranges[i].bytes; at += kChunkBytes)
      chunks.push_back(
          {{ranges[i].file, ranges[i].offset + at, std::min(kChunkBytes, ranges[i].bytes - at)},
           i});
  return chunks;
}

// Readers take chunks in order. Each asks for the chunks ahead of it, so that the disk always has
// several reads to do, then waits for its own.
class Readers {
 public:
  // `visit` may be null: then the pages stay mapped.
  Readers(std::vector<Chunk> chunks, const LoadOptions& options, const PageVisitor* visit)
      : chunks_(std::move(chunks)), options_(options), visit_(visit) {
    for (const Chunk& chunk : chunks_) bytes_total_ += chunk.range.bytes;
  }

  Status run() {
    const auto start = std::chrono::steady_clock::now();
    const int count = std::max(1, options_.thread_count);
    std::vector<std::jthread> threads;
    running_ = count;
    for (int i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    std::unique_lock lock(mu_);
    while (running_ > 0) {
      report(start);
      finished_.wait_for(lock, kReportEvery);
    }
    report(start);
    return status_;
  }

 private:
  static constexpr size_t kChunksAhead = 6;  // 48 MB: enough for a disk that wants deep queues

  void work() {
    for (size_t i = next_++; i < chunks_.size(); i = next_++) {
      if (options_.cancel != nullptr && options_.cancel->load())
        stop(error(Code::kCancelled, "loading was stopped"));
      if (is_stopping_) break;
      ask_up_to(i + kChunksAhead);
      const FileRange& range = chunks_[i].range;
      Status status = populate(range);
      if (!status.is_ok()) {
        stop(std::move(status));
        break;
      }
      if (visit_ != nullptr) {
        (*visit_)(chunks_[i].source, range);
        give_up(range);
      }
      bytes_done_ += range.bytes;
    }
    const std::lock_guard lock(mu_);
    --running_;
    finished_.notify_one();
  }

  void ask_up_to(size_t end) {
    end = std::min(end, chunks_.size());
    for (size_t i = asked_; i < end; i = asked_) {
      if (!asked_.compare_exchange_strong(i, i + 1)) continue;  // another reader asked for it
      const FileRange& range = chunks_[i].range;
      MappedFile::will_need(range.file->all().data() + range.offset, range.bytes);
    }
  }

  void stop(Status status) {
    const std::lock_guard lock(mu_);
    if (status_.is_ok()) status_ = std::move(status);
    is_stopping_ = true;
  }

  void report(std::chrono::steady_clock::time_point start) const {
    if (!options_.progress) return;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    options_.progress({bytes_done_, bytes_total_, elapsed.count()});
  }

  const std::vector<Chunk> chunks_;
  const LoadOptions& options_;
  const PageVisitor* const visit_;
  int64_t bytes_total_ = 0;
  std::atomic<size_t> next_ = 0;   // chunk that the next free reader takes
  std::atomic<size_t> asked_ = 0;  // chunks below it were asked for
  std::atomic<int64_t> bytes_done_ = 0;
  std::atomic<bool> is_stopping_ = false;
  std::mutex mu_;
  std::condition_variable finished_;
  int running_ = 0;  // guarded by mu_
  Status status_;    // guarded by mu_
};

}  // namespace

Status load_pages(std::span<const FileRange> ranges, const LoadOptions& options) {
  return Readers(cut_into_chunks(ranges), options, nullptr).run();
}

Status visit_pages(std::span<const FileRange> ranges, const LoadOptions& options,
                   const PageVisitor& visit) {
  return Readers(cut_into_chunks(ranges), options, &visit).run();
}

std::vector<FileRange> merge_ranges(std::vector<FileRange> ranges, int64_t gap_bytes_max) {
  std::ranges::sort(ranges, [](const FileRange& a, const FileRange& b) {
    return std::pair(a.file->path(), a.offset) < std::pair(b.file->path(), b.offset);
  });
  std::vector<FileRange> merged;
  for (const FileRange& range : ranges) {
    if (!merged.empty() && merged.back().file == range.file &&
        range.offset - (merged.back().offset + merged.back().bytes) < gap_bytes_max)
      merged.back().bytes = range.offset + range.bytes - merged.back().offset;
    else
      merged.push_back(range);
  }
  return merged;
}

}  // namespace fathom
