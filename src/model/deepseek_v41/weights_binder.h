// Finds tensors by name in the shards, checks dtype and shape, and turns them into views. It
// remembers what was asked for, so that finish() can name what is missing and what is left over.
// Used while a checkpoint opens, by weights_map.cc alone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "io/safetensors.h"
#include "tensor/view.h"

namespace fathom::v41 {

// f32 copies of bf16 vectors, and aligned copies of tensors that a file placed on odd offsets.
using OwnedTensors = std::deque<std::vector<float>>;

class TensorBinder {
 public:
  // `shards` must outlive the binder and every view it made.
  explicit TensorBinder(std::span<const std::unique_ptr<SafetensorsFile>> shards);

  // Whether any tensor's name begins so.
  bool has_prefix(std::string_view prefix) const;

  // Matrices; views are empty after an error, which finish() reports. Quantised ones take the name
  // without ".weight" and ".scale". Scales of FP8 are checked for NaN at once, scales of experts
  // and tables when they are used.
  WeightView bf16(const std::string& name, int64_t rows, int64_t cols);
  WeightView fp8(const std::string& name, int64_t rows, int64_t cols);
  WeightView fp4(const std::string& name, int64_t rows, int64_t cols);

  // Vectors and small matrices as f32, checked to be finite.
  std::span<const float> vector_f32(const std::string& name, int64_t count);
  std::span<const float> vector_bf16(const std::string& name, int64_t count);
  MatrixView<const float> matrix_f32(const std::string& name, int64_t rows, int64_t cols);
  MatrixView<const float> matrix_bf16(const std::string& name, int64_t rows, int64_t cols);

  // A table of FP8 rows with a scale for each row and 32 columns.
  struct Table {
    const MappedFile* file = nullptr;  // that holds the scales; null after an error
    const uint8_t* codes = nullptr;
    const uint8_t* scales = nullptr;
  };
  Table table(const std::string& name, int64_t rows, int64_t cols);

  // Ok when all that was asked for is there, right and finite, and nothing else is.
  Status finish(const std::string& index_name) const;
  OwnedTensors take_owned() { return std::move(owned_); }
  // Tensors that had to be copied because of their offset.
  const std::vector<std::string>& misaligned() const { return misaligned_; }

 private:
  struct Slot {
    const SafetensorsFile* shard = nullptr;
    const TensorEntry* entry = nullptr;
    bool is_used = false;
  };
  // The tensor, or null after noting why not. `companion` names the tensor it is the scale of.
  const Slot* take(const std::string& name, DType dtype, std::initializer_list<int64_t> shape,
                   const std::string& companion = "");
  const void* aligned_data(const Slot& slot);
  std::span<const float> widened(const Slot& slot);  // bf16 to f32
  std::span<const float> finite(const Slot& slot, std::span<const float> values);
  void check_scale_bytes(const Slot& slot);
  void note(Status problem);

  std::unordered_map<std::string_view, Slot> tensors_;
  std::vector<std::string> missing_;  // in the order asked for
  Status first_problem_;
  OwnedTensors owned_;
  std::vector<std::string> misaligned_;
};

}  // namespace fathom::v41
