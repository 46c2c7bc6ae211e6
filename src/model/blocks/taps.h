// The one place through which every named tensor of a forward pass goes: checked to be finite,
// shown to the observer. What the observer wrote into it is what the pass goes on with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/blocks/observer.h"
#include "tensor/view.h"

namespace fathom {

class Taps {
 public:
  // Layers from `layer_count` on are DSpark stages: "mtp.0" and so on.
  explicit Taps(Observer* observer, int32_t layer_count = 0)
      : observer_(observer), layer_count_(layer_count) {}

  bool has_observer() const { return observer_ != nullptr; }

  // "layers.3" + "attn_norm"; an empty place leaves the name alone. kInternal names the tensor, the
  // row and the column of the first value that is not finite.
  Status pass(int32_t layer, std::string_view name, MatrixView<float> values) const;
  Status pass(int32_t layer, std::string_view site, std::string_view name,
              MatrixView<float> values) const;
  Status pass(std::string_view name, MatrixView<float> values) const;

  // For tensors that may hold −inf (scores) or are integers: shown, not checked.
  void show(int32_t layer, std::string_view name, MatrixView<float> values) const;
  void show(int32_t layer, std::string_view name, MatrixView<int32_t> values) const;
  void show(std::string_view name, MatrixView<int32_t> values) const;

 private:
  std::string place(int32_t layer) const;

  Observer* observer_;  // null: nobody looks
  int32_t layer_count_;
};

// Whether all values are finite; one pass over them.
bool all_finite(MatrixView<const float> values);

}  // namespace fathom
