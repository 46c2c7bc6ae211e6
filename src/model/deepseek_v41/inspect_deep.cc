// Reads every weight of a checkpoint and looks for bytes that are no number.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

#include "base/json.h"
#include "base/sha256.h"
#include "io/read_file.h"
#include "model/deepseek_v41/inspect.h"

namespace fathom::v41 {

namespace {

constexpr size_t kProblemsNamedMax = 10;
constexpr int64_t kSumsBytesMax = 1 << 20;

// Index of the first element that is no finite number, or -1.
template <typename Word>
int64_t first_not_finite(const std::byte* data, int64_t bytes, Word exponent_mask) {
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(sizeof(Word))) {
    Word word = 0;
    std::memcpy(&word, data + at, sizeof(word));
    if ((word & exponent_mask) == exponent_mask) return at / static_cast<int64_t>(sizeof(Word));
  }
  return -1;
}

int64_t first_byte(const std::byte* data, int64_t bytes, uint8_t mask, uint8_t bad) {
  const auto* begin = reinterpret_cast<const uint8_t*>(data);
  const auto* found =
      std::find_if(begin, begin + bytes, [=](uint8_t byte) { return (byte & mask) == bad; });
  return found == begin + bytes ? -1 : found - begin;
}

// The same over a stretch of a tensor's data, by dtype. FP4 codes are numbers, all sixteen.
int64_t first_bad_element(DType dtype, const std::byte* data, int64_t bytes) {
  switch (dtype) {
    case DType::kF32:
      return first_not_finite<uint32_t>(data, bytes, 0x7F800000);
    case DType::kBF16:
      return first_not_finite<uint16_t>(data, bytes, 0x7F80);
    case DType::kF8E4M3:
      return first_byte(data, bytes, 0x7F, 0x7F);
    case DType::kF8E8M0:
      return first_byte(data, bytes, 0xFF, 0xFF);
    default:
      return -1;
  }
}

const char* wanted_of(DType dtype) {
  return dtype == DType::kF8E8M0 ? "scale bytes from 0 to 254" : "finite numbers";
}

// Problems of several reader threads; keeps the first few and counts the rest.
class Problems {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mu_);
    ++count_;
    if (named_.size() < kProblemsNamedMax) named_.push_back(std::move(text));
  }
  void move_to(InspectDeep* deep) {
    const std::lock_guard lock(mu_);
    std::ranges::sort(named_);
    deep->problem_count = count_;
    deep->problems = std::move(named_);
  }

 private:
  std::mutex mu_;
  int64_t count_ = 0;               // guarded by mu_
  std::vector<std::string> named_;  // guarded by mu_
};

// One element a piece of 8 MiB is named; a damaged file does not need more.
Status check_elements(const Checkpoint& checkpoint, const LoadOptions& options,
                      Problems* problems) {
  std::vector<FileRange> ranges;
  std::vector<const TensorEntry*> entries;
  for (const auto& shard : checkpoint.shards())
    for (const TensorEntry& entry : shard->tensors()) {
      ranges.push_back({&shard->file(), entry.offset, entry.bytes});
      entries.push_back(&entry);
    }
  return visit_pages(ranges, options, [&](size_t range, const FileRange& piece) {
    const TensorEntry& entry = *entries[range];
    const int64_t bad =
        first_bad_element(entry.dtype, piece.file->all().data() + piece.offset, piece.bytes);
    if (bad < 0) return;
    const int64_t first = (piece.offset - entry.offset) / dtype_bytes(entry.dtype);
    problems->add(fmt::format("{}: tensor {}: wanted {}, element {} is none", piece.file->name(),
                              entry.name, wanted_of(entry.dtype), first + bad));
  });
}

using Sums = std::vector<std::pair<std::string, std::string>>;  // file name, hex digest

// Lines of `sha256sum`: the digest, two characters, the name.
Sums parse_sums(const std::string& text) {
  constexpr size_t kDigits = 64;
  Sums sums;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.size() > kDigits + 2)
      sums.emplace_back(line.substr(kDigits + 2), line.substr(0, kDigits));
    at = end + 1;
  }
  return sums;
}

Result<Sums> read_sums(const std::string& directory) {
  Result<std::string> lines = read_file(directory + "/SHA256SUMS", kSumsBytesMax);
  if (lines.is_ok()) return parse_sums(*lines);
  if (lines.status().code() != Code::kNotFound) return lines.status();
  const Result<std::string> text = read_file(directory + "/SHA256.json", kSumsBytesMax);
  if (!text) return text.status().code() == Code::kNotFound ? Result<Sums>(Sums{}) : text.status();
  FATHOM_ASSIGN(const Json json, parse_json(*text));
  Sums sums;
  for (const auto& [name, sum] : json.items())
    if (sum.is_string()) sums.emplace_back(name, sum.get<std::string>());
  return sums;
}

// Files that a list of checksums names and the folder lacks are the index's business, not ours.
Status check_sums(const std::string& directory, Problems* problems, InspectDeep* deep) {
  FATHOM_ASSIGN(const Sums sums, read_sums(directory));
  for (const auto& [name, wanted] : sums) {
    if (name.find('/') != name.npos) continue;
    const Result<std::unique_ptr<MappedFile>> file = MappedFile::open(directory + "/" + name);
    if (!file) continue;
    const auto all = (*file)->all();
    const std::string found = sha256_hex({reinterpret_cast<const char*>(all.data()), all.size()});
    if (found == wanted) {
      deep->checksums.push_back(name);
    } else {
      problems->add(
          fmt::format("{}: wanted SHA-256 {}, found {}: the file is damaged, fetch it "
                      "again",
                      name, wanted, found));
    }
  }
  return {};
}

}  // namespace

Result<InspectDeep> inspect_deep(const Checkpoint& checkpoint, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  InspectDeep deep;
  Problems problems;
  FATHOM_TRY(check_elements(checkpoint, options, &problems));
  FATHOM_TRY(check_sums(checkpoint.directory(), &problems, &deep));
  for (const auto& shard : checkpoint.shards())
    for (const TensorEntry& entry : shard->tensors()) deep.bytes += entry.bytes;
  problems.move_to(&deep);
  deep.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return deep;
}

}  // namespace fathom::v41
