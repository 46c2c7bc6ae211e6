#include "model/deepseek_v41/weights_binder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace fathom::v41 {

namespace {

constexpr int64_t kBlock = 32;    // rows and columns that share a scale
constexpr int kScaleNan = 255;    // the one E8M0 byte that is no number
constexpr size_t kNamedMax = 10;  // of a list of names in a message

int64_t blocks(int64_t n) {
  return (n + kBlock - 1) / kBlock;
}

// "a, b and 12 more", of at most kNamedMax names.
std::string name_list(std::vector<std::string> names) {
  const size_t count = names.size();
  names.resize(std::min(count, kNamedMax));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (count > kNamedMax) text += fmt::format(" and {} more", count - kNamedMax);
  return text;
}

// What the binder looks at: vectors, f32 matrices, scales. The bulk of a model is none of these.
bool is_read_at_open(const TensorEntry& entry) {
  constexpr int64_t kBytesMax = 16 << 20;  // of one tensor; the released model's largest has 2 MB
  return entry.bytes <= kBytesMax && entry.name.find(".ffn.experts.") == entry.name.npos &&
         (entry.dtype == DType::kF32 || entry.dtype == DType::kF8E8M0 ||
          (entry.dtype == DType::kBF16 && entry.shape.size() == 1));
}

}  // namespace

TensorBinder::TensorBinder(std::span<const std::unique_ptr<SafetensorsFile>> shards) {
  size_t count = 0;
  for (const auto& shard : shards) count += shard->tensors().size();
  tensors_.reserve(count);
  for (const auto& shard : shards)
    for (const TensorEntry& entry : shard->tensors()) {
      tensors_.emplace(entry.name, Slot{shard.get(), &entry, false});
      // All at once, so that a disk can read them in any order instead of one after another.
      if (is_read_at_open(entry)) MappedFile::will_need(shard->data(entry), entry.bytes);
    }
}

bool TensorBinder::has_prefix(std::string_view prefix) const {
  return std::ranges::any_of(tensors_,
                             [&](const auto& item) { return item.first.starts_with(prefix); });
}

void TensorBinder::note(Status problem) {
  if (first_problem_.is_ok()) first_problem_ = std::move(problem);
}

const TensorBinder::Slot* TensorBinder::take(const std::string& name, DType dtype,
                                             std::initializer_list<int64_t> shape,
                                             const std::string& companion) {
  const std::string role = companion.empty() ? "" : fmt::format(" (the scale of {})", companion);
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    missing_.push_back(name + role);
    return nullptr;
  }
  Slot& slot = found->second;
  slot.is_used = true;
  const TensorEntry& entry = *slot.entry;
  if (entry.dtype == dtype && std::ranges::equal(entry.shape, shape)) return &slot;
  note(error(Code::kDataLoss,
             "{}: tensor {}{}: wanted {} {}, found {} {}: config.json and the shards do not belong "
             "together, fetch both from one place",
             slot.shard->file().name(), name, role, dtype_name(dtype),
             shape_text(std::vector<int64_t>(shape)), dtype_name(entry.dtype),
             shape_text(entry.shape)));
  return nullptr;
}

// Safetensors files place every tensor on a multiple of its element size, but nothing in the
// format demands it. A stray one is copied rather than refused.
const void* TensorBinder::aligned_data(const Slot& slot) {
  const std::byte* data = slot.shard->data(*slot.entry);
  const auto alignment = static_cast<uintptr_t>(dtype_bytes(slot.entry->dtype));
  if (reinterpret_cast<uintptr_t>(data) % alignment == 0) return data;
  misaligned_.push_back(slot.entry->name);
  const auto bytes = static_cast<size_t>(slot.entry->bytes);
  std::vector<float>& copy = owned_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
  std::memcpy(copy.data(), data, bytes);
  return copy.data();
}

std::span<const float> TensorBinder::finite(const Slot& slot, std::span<const float> values) {
  const auto bad = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
  if (bad == values.end()) return values;
  note(error(Code::kDataLoss,
             "{}: tensor {}: wanted finite values, found {} at element {}: the file is damaged, "
             "fetch it again",
             slot.shard->file().name(), slot.entry->name, *bad, bad - values.begin()));
  return {};
}

void TensorBinder::check_scale_bytes(const Slot& slot) {
  const std::byte* data = slot.shard->data(*slot.entry);
  const void* bad = std::memchr(data, kScaleNan, static_cast<size_t>(slot.entry->bytes));
  if (bad == nullptr) return;
  note(error(Code::kDataLoss,
             "{}: tensor {}: wanted E8M0 bytes from 0 to 254, found 255 (NaN) at element {}: the "
             "file is damaged, fetch it again",
             slot.shard->file().name(), slot.entry->name,
             static_cast<const std::byte*>(bad) - data));
}

WeightView TensorBinder::bf16(const std::string& name, int64_t rows, int64_t cols) {
  const Slot* slot = take(name, DType::kBF16, {rows, cols});
  if (slot == nullptr) return {};
  return {DType::kBF16, rows, cols, aligned_data(*slot), nullptr};
}

WeightView TensorBinder::fp8(const std::string& name, int64_t rows, int64_t cols) {
  const Slot* weight = take(name + ".weight", DType::kF8E4M3, {rows, cols});
  const Slot* scale =
      take(name + ".scale", DType::kF8E8M0, {blocks(rows), blocks(cols)}, name + ".weight");
  if (weight == nullptr || scale == nullptr) return {};
  check_scale_bytes(*scale);
  return {DType::kF8E4M3, rows, cols, weight->shard->data(*weight->entry),
          reinterpret_cast<const uint8_t*>(scale->shard->data(*scale->entry))};
}

WeightView TensorBinder::fp4(const std::string& name, int64_t rows, int64_t cols) {
  const Slot* weight = take(name + ".weight", DType::kI8, {rows, cols / 2});
  const Slot* scale =
      take(name + ".scale", DType::kF8E8M0, {rows, cols / kBlock}, name + ".weight");
  if (weight == nullptr || scale == nullptr) return {};
  return {DType::kI8, rows, cols, weight->shard->data(*weight->entry),
          reinterpret_cast<const uint8_t*>(scale->shard->data(*scale->entry))};
}

std::span<const float> TensorBinder::vector_f32(const std::string& name, int64_t count) {
  const Slot* slot = take(name, DType::kF32, {count});
  if (slot == nullptr) return {};
  const auto* data = static_cast<const float*>(aligned_data(*slot));
  return finite(*slot, {data, static_cast<size_t>(count)});
}

MatrixView<const float> TensorBinder::matrix_f32(const std::string& name, int64_t rows,
                                                 int64_t cols) {
  const Slot* slot = take(name, DType::kF32, {rows, cols});
  if (slot == nullptr) return {};
  const auto* data = static_cast<const float*>(aligned_data(*slot));
  finite(*slot, {data, static_cast<size_t>(rows * cols)});
  return {data, rows, cols};
}

std::span<const float> TensorBinder::widened(const Slot& slot) {
  const std::byte* data = slot.shard->data(*slot.entry);
  const size_t count = static_cast<size_t>(slot.entry->bytes) / sizeof(uint16_t);
  std::vector<float>& values = owned_.emplace_back(count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits = 0;  // bf16 is the upper half of an f32
    std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
    values[i] = std::bit_cast<float>(uint32_t{bits} << 16);
  }
  return finite(slot, values);
}

std::span<const float> TensorBinder::vector_bf16(const std::string& name, int64_t count) {
  const Slot* slot = take(name, DType::kBF16, {count});
  return slot == nullptr ? std::span<const float>() : widened(*slot);
}

MatrixView<const float> TensorBinder::matrix_bf16(const std::string& name, int64_t rows,
                                                  int64_t cols) {
  const Slot* slot = take(name, DType::kBF16, {rows, cols});
  if (slot == nullptr) return {};
  return {widened(*slot).data(), rows, cols};
}

TensorBinder::Table TensorBinder::table(const std::string& name, int64_t rows, int64_t cols) {
  const Slot* weight = take(name + ".weight", DType::kF8E4M3, {rows, cols});
  const Slot* scale =
      take(name + ".scale", DType::kF8E8M0, {rows, cols / kBlock}, name + ".weight");
  if (weight == nullptr || scale == nullptr) return {};
  return {&scale->shard->file(),
          reinterpret_cast<const uint8_t*>(weight->shard->data(*weight->entry)),
          reinterpret_cast<const uint8_t*>(scale->shard->data(*scale->entry))};
}

Status TensorBinder::finish(const std::string& index_name) const {
  if (!first_problem_.is_ok()) return first_problem_;
  std::vector<std::string> unexpected;
  for (const auto& [name, slot] : tensors_)
    if (!slot.is_used)
      unexpected.push_back(
          fmt::format("{} (in {})", name.substr(0, 120), slot.shard->file().name()));
  std::ranges::sort(unexpected);
  if (missing_.empty() && unexpected.empty()) return {};
  std::string text;
  if (!missing_.empty())
    text += fmt::format("{} tensors that config.json asks for are missing: {}. ", missing_.size(),
                        name_list(missing_));
  if (!unexpected.empty())
    text += fmt::format("{} tensors are there that config.json has no place for: {}. ",
                        unexpected.size(), name_list(unexpected));
  return error(Code::kDataLoss,
               "{}: {}The download is incomplete, or config.json belongs to another model: fetch "
               "both from one place",
               index_name, text);
}

}  // namespace fathom::v41
