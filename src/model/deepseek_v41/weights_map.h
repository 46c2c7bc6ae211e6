// Which tensors a config asks for, by name, dtype and shape (spec §9.2), bound to the shards.
#pragma once

#include <map>

#include "base/ids.h"
#include "base/status.h"
#include "memory/mapped_expert_store.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/weights.h"
#include "model/deepseek_v41/weights_binder.h"

namespace fathom::v41 {

struct BoundWeights {
  Weights weights;
  std::map<LayerId, MappedExpertLayer> experts;  // DSpark stage i as layer L + i
};

// Asks `binder` for every tensor of the model; its finish() says whether all went well. Vision and
// DSpark are bound when the checkpoint has any tensor of theirs, and must then be complete.
BoundWeights bind_weights(const Config& config, TensorBinder* binder);

}  // namespace fathom::v41
