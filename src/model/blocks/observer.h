// Who wants to see the named tensors of a forward pass (taps), and may replace them on the way.
// verify implements it; a forward without an observer pays one null check a tap.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/view.h"

namespace fathom {

// Names are those of the golden files: "layers.3.attn_norm", "final_h". Called on the engine
// thread, in the order in which the tensors are made. What is written to `values` is what the
// forward pass goes on with, so an observer can feed a step with inputs of its own.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void tap(const std::string& name, MatrixView<float> values) = 0;
  virtual void tap(const std::string& name, MatrixView<int32_t> values) = 0;
};

}  // namespace fathom
