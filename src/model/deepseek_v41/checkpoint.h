// A model directory in the official layout, opened: config, weights and experts, all validated.
// Opening reads headers and the small tensors only; nothing is converted or copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/page_loader.h"
#include "io/safetensors.h"
#include "memory/expert_store.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/weights.h"

namespace fathom::v41 {

class Checkpoint {
 public:
  // Errors name file, tensor, wanted, found and what to do.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& directory);
  ~Checkpoint();

  const std::string& directory() const;
  const Config& config() const;
  const Weights& weights() const;
  ExpertStore& experts();  // layers 0 … L−1, then DSpark stages as L, L+1, …
  std::string tokenizer_path() const;
  // Things worth a line in the log: fields that are not known, parts that are not there.
  const std::vector<std::string>& notices() const;
  const std::vector<std::unique_ptr<SafetensorsFile>>& shards() const;

  // Brings into memory what every token needs, and experts and tables too when all of it fits the
  // memory that is free. Reads each file in order at the speed of the disk. Optional: without it
  // the same bytes are read when first used. With too little memory for that, a warning and nothing
  // else.
  Status load(const LoadOptions& options);

 private:
  struct Parts;
  explicit Checkpoint(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fathom::v41
