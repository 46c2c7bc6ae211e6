#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/json.h"

namespace fathom {

namespace {

constexpr int64_t kLengthBytes = 8;  // the header length in front of the header
// A header of the largest size is mostly names; 2 M values hold 150,000 tensors and bound the
// memory of parsing at about 200 MB.
constexpr int64_t kHeaderValuesMax = 2'000'000;
constexpr size_t kQuotedMax = 120;  // of a name that a file chose

std::string quoted(const std::string& name) {
  return "\"" + (name.size() <= kQuotedMax ? name : name.substr(0, kQuotedMax) + "...") + "\"";
}

// A list of non-negative whole numbers; `what` names it in errors.
Result<std::vector<int64_t>> number_list(const Json& value, size_t count_max, const char* what) {
  if (!value.is_array())
    return error(Code::kDataLoss, "{}: wanted a list, found {}", what, value.type_name());
  if (value.size() > count_max)
    return error(Code::kDataLoss, "{}: wanted at most {} numbers, found {}", what, count_max,
                 value.size());
  std::vector<int64_t> numbers;
  for (const Json& item : value) {
    // Negative numbers, fractions and what does not fit 64 bits are other kinds to the parser.
    if (!item.is_number_unsigned() || item.get<uint64_t>() > std::numeric_limits<int64_t>::max())
      return error(Code::kDataLoss, "{}: wanted whole numbers from 0 to 2^63 - 1, found {}", what,
                   item.dump().substr(0, kQuotedMax));
    numbers.push_back(static_cast<int64_t>(item.get<uint64_t>()));
  }
  return numbers;
}

// dtype size times the product of the shape, or an error where that passes 2^63.
Result<int64_t> bytes_of(DType dtype, std::span<const int64_t> shape) {
  int64_t bytes = dtype_bytes(dtype);
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(bytes, dim, &bytes))
      return error(Code::kDataLoss, "shape {} does not fit 63 bits", shape_text(shape));
  return bytes;
}

// One value of the header object. Offsets come back relative to the start of the file.
Result<TensorEntry> parse_entry(const std::string& name, const Json& value, int64_t data_begin,
                                int64_t data_bytes) {
  if (!value.is_object())
    return error(Code::kDataLoss, "wanted an object, found {}", value.type_name());
  for (const char* field : {"dtype", "shape", "data_offsets"})
    if (!value.contains(field)) return error(Code::kDataLoss, "field {} is missing", field);

  TensorEntry entry;
  entry.name = name;
  if (!value["dtype"].is_string())
    return error(Code::kDataLoss, "dtype: wanted a text, found {}", value["dtype"].type_name());
  const std::string& dtype = value["dtype"].get_ref<const std::string&>();
  const std::optional<DType> known = dtype_from_name(dtype);
  if (!known) return error(Code::kUnsupported, "dtype {} is not known", quoted(dtype));
  entry.dtype = *known;

  FATHOM_ASSIGN(entry.shape, number_list(value["shape"], kSafetensorsDimsMax, "shape"));
  FATHOM_ASSIGN(const int64_t wanted, bytes_of(entry.dtype, entry.shape));
  FATHOM_ASSIGN(const std::vector<int64_t> offsets,
                number_list(value["data_offsets"], 2, "data_offsets"));
  if (offsets.size() != 2)
    return error(Code::kDataLoss, "data_offsets: wanted 2 numbers, found {}", offsets.size());
  if (offsets[0] > offsets[1])
    return error(Code::kDataLoss, "data_offsets [{}, {}] run backwards", offsets[0], offsets[1]);
  if (offsets[1] > data_bytes)
    return error(Code::kDataLoss,
                 "data_offsets end at {}, the file has {} data bytes: it is cut short, fetch it "
                 "again",
                 offsets[1], data_bytes);
  if (offsets[1] - offsets[0] != wanted)
    return error(Code::kDataLoss, "{} {} wants {} bytes, data_offsets give {}", dtype,
                 shape_text(entry.shape), wanted, offsets[1] - offsets[0]);
  entry.offset = data_begin + offsets[0];
  entry.bytes = wanted;
  return entry;
}

// Sorted entries must follow one another without a hole from `begin` to `end`.
Status check_coverage(const std::vector<TensorEntry>& entries, int64_t begin, int64_t end) {
  int64_t at = begin;
  for (const TensorEntry& entry : entries) {
    if (entry.offset != at)
      return error(Code::kDataLoss, "tensor {} {} at data offset {}, wanted {}", quoted(entry.name),
                   entry.offset < at ? "overlaps the one before it" : "leaves a hole before it",
                   entry.offset - begin, at - begin);
    at += entry.bytes;
  }
  if (at != end)
    return error(Code::kDataLoss,
                 "the file has {} bytes, its header accounts for {}: {} bytes follow the last "
                 "tensor",
                 end, at, end - at);
  return {};
}

Result<int64_t> header_bytes_of(std::span<const std::byte> head, int64_t file_bytes) {
  if (static_cast<int64_t>(head.size()) < kLengthBytes)
    return error(Code::kDataLoss, "has {} bytes, too few for a safetensors header", file_bytes);
  uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof(length));
  if (length > static_cast<uint64_t>(kSafetensorsHeaderBytesMax))
    return error(Code::kDataLoss,
                 "header length {}, at most {} are read: not a safetensors file, or a damaged one",
                 length, kSafetensorsHeaderBytesMax);
  const auto bytes = static_cast<int64_t>(length);
  if (bytes > file_bytes - kLengthBytes)
    return error(Code::kDataLoss,
                 "header length {}, but only {} bytes follow: the file is cut short, fetch it "
                 "again",
                 bytes, file_bytes - kLengthBytes);
  return bytes;
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<std::vector<TensorEntry>> parse_safetensors_header(std::span<const std::byte> head,
                                                          int64_t file_bytes) {
  FATHOM_ASSIGN(const int64_t header_bytes, header_bytes_of(head, file_bytes));
  FATHOM_CHECK(static_cast<int64_t>(head.size()) >= kLengthBytes + header_bytes,
               "{} of {} header bytes given", head.size(), kLengthBytes + header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + kLengthBytes,
                              static_cast<size_t>(header_bytes));
  // The format wants '{' first; a parser would also accept blanks or a byte-order mark.
  if (text.empty() || text.front() != '{')
    return error(Code::kDataLoss, "header does not begin with '{{': not a safetensors file");
  const Result<Json> header = parse_json(
      text,
      {.bytes_max = kSafetensorsHeaderBytesMax, .depth_max = 4, .values_max = kHeaderValuesMax});
  if (!header) return error(Code::kDataLoss, "header: {}", header.status().message());

  const int64_t data_begin = kLengthBytes + header_bytes;
  std::vector<TensorEntry> entries;
  entries.reserve(header->size());
  for (const auto& [name, value] : header->items()) {
    if (name == "__metadata__") {
      if (!value.is_object())
        return error(Code::kDataLoss, "__metadata__: wanted an object, found {}",
                     value.type_name());
      continue;
    }
    Result<TensorEntry> entry = parse_entry(name, value, data_begin, file_bytes - data_begin);
    if (!entry) return entry.status().with_context("tensor " + quoted(name));
    entries.push_back(std::move(entry).value());
  }
  std::ranges::sort(entries, [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  FATHOM_TRY(check_coverage(entries, data_begin, file_bytes));
  return entries;
}

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  FATHOM_ASSIGN(file->file_, MappedFile::open(path));
  if (const auto header = header_bytes_of(file->file_->all(), file->file_->bytes()))
    MappedFile::will_need(file->file_->all().data(), kLengthBytes + *header);
  Result<std::vector<TensorEntry>> tensors =
      parse_safetensors_header(file->file_->all(), file->file_->bytes());
  if (!tensors) return tensors.status().with_context(path);
  file->tensors_ = std::move(tensors).value();
  file->by_name_.reserve(file->tensors_.size());
  for (const TensorEntry& entry : file->tensors_) file->by_name_.emplace(entry.name, &entry);
  file->file_->read_neighbours(true);
  return file;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Result<const TensorEntry*> SafetensorsFile::require(std::string_view name, DType dtype,
                                                    size_t alignment) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr)
    return error(Code::kNotFound, "{}: there is no tensor \"{}\"", file_->path(), name);
  if (entry->dtype != dtype)
    return error(Code::kDataLoss, "{}: tensor \"{}\": wanted {}, found {}", file_->path(), name,
                 dtype_name(dtype), dtype_name(entry->dtype));
  if (reinterpret_cast<uintptr_t>(data(*entry)) % alignment != 0)
    return error(Code::kUnsupported, "{}: tensor \"{}\" is not aligned to {} bytes", file_->path(),
                 name, alignment);
  return entry;
}

}  // namespace fathom
