// Experts used straight from the mapped checkpoint: the page cache is the only tier. The simplest
// ExpertStore, and the one that others are compared with.
//
// Nothing of an expert is read before it is first pinned. Then its pages are asked for, all experts
// of the step at once, and its scales are checked: no byte 255 (NaN) is ever computed with. A
// checked expert is not checked again, so a step costs one flag an expert.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/mapped_file.h"
#include "memory/expert_store.h"

namespace fathom {

struct MappedExpertLayer {
  std::string name;                    // "layers.3.ffn.experts", for messages
  std::vector<ExpertWeights> experts;  // into mappings that outlive the store
};

class MappedExpertStore : public ExpertStore {
 public:
  // `files` hold the experts' bytes, for messages. `is_larger_than_memory`: pages may have been
  // dropped since the last use, so ask for them again at each pin.
  MappedExpertStore(std::map<LayerId, MappedExpertLayer> layers,
                    std::vector<const MappedFile*> files, bool is_larger_than_memory);

  Result<ExpertPins> pin(LayerId layer, std::span<const ExpertId> experts) override;
  void prefetch(LayerId layer, std::span<const ExpertId> experts, PrefetchClass why) override;

  // Checks the scales of every expert now, as --deep does. Reads a sixteenth of the bytes.
  Status check_all();

 private:
  struct Layer {
    MappedExpertLayer mapped;
    std::vector<bool> is_checked;
  };
  class Lease;

  Layer& layer_of(LayerId id);
  Status check(Layer& layer, size_t expert);
  Status check_scales(const Layer& layer, size_t expert, const char* matrix,
                      const WeightView& weight) const;

  std::map<LayerId, Layer> layers_;
  std::vector<const MappedFile*> files_;
  const bool is_larger_than_memory_;
};

}  // namespace fathom
