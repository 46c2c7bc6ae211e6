// A writable copy of a committed checkpoint in a temporary folder, and ways to damage it. Files are
// written without any of the checks of io/safetensors_writer.h.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "tensor/dtype.h"

namespace fathom::v41 {

struct RawTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::string data;
};

class DamagedCheckpoint {
 public:
  // `golden` is a folder of tests/golden, "v41-tiny".
  explicit DamagedCheckpoint(const std::string& golden);
  ~DamagedCheckpoint();
  DamagedCheckpoint(const DamagedCheckpoint&) = delete;
  DamagedCheckpoint& operator=(const DamagedCheckpoint&) = delete;

  const std::string& directory() const { return directory_; }
  std::string path(const std::string& file) const { return directory_ + "/" + file; }
  std::string shard_of(const std::string& tensor) const;  // file name, from the index

  void edit_json(const std::string& file, const std::function<void(Json&)>& edit) const;
  void edit_index(const std::function<void(Json& weight_map)>& edit) const;
  // Rewrites the shard that holds `tensor` after `edit` changed its list of tensors; the index
  // stays as it is.
  void edit_shard(const std::string& tensor,
                  const std::function<void(std::vector<RawTensor>&)>& edit) const;
  // The same for one tensor.
  void edit_tensor(const std::string& tensor, const std::function<void(RawTensor&)>& edit) const;
  // Removes tensors from their shard and from the index: the checkpoint never had them.
  void forget_tensors(const std::function<bool(const std::string&)>& is_gone) const;
  void append(const std::string& file, const std::string& bytes) const;
  void resize(const std::string& file, int64_t delta) const;
  void replace(const std::string& file, const std::string& content) const;
  void remove(const std::string& file) const;

 private:
  std::string directory_;
};

// Overwrites element `index` of a tensor's data with `value`.
template <typename T>
void set_element(RawTensor* tensor, size_t index, T value) {
  FATHOM_CHECK((index + 1) * sizeof(T) <= tensor->data.size(), "element {} of {}", index,
               tensor->name);
  std::memcpy(tensor->data.data() + index * sizeof(T), &value, sizeof(T));
}

// A safetensors file of these tensors in this order. Its data begins at an odd offset, which the
// format allows and nobody may rely on.
std::string raw_safetensors(const std::vector<RawTensor>& tensors);

}  // namespace fathom::v41
