// Runs the ids of a case through the model in one policy, and gathers the logits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "model/deepseek_v41/checkpoint.h"
#include "model/deepseek_v41/model.h"
#include "verify/golden.h"

namespace fathom::verify {

// The opened checkpoint and what a model is made with.
struct Subject {
  std::shared_ptr<v41::Checkpoint> checkpoint;
  std::string config_text;  // config.json, for overrides
  std::vector<int32_t> token_map;
  kernels::Isa isa = kernels::Isa::kPortable;
  ThreadPool* pool = nullptr;
};

// Opens the checkpoint and builds the Engram token map from its tokenizer.
Result<Subject> open_subject(const std::string& directory, kernels::Isa isa, ThreadPool& pool);

// The config, with the fields of an index entry's "config_override" replaced.
Result<v41::Config> config_of(const Subject& subject, const GoldenCase& golden);

// One model in one policy with one growing sequence.
class Runner {
 public:
  static Result<Runner> create(const Subject& subject, const GoldenCase& golden,
                               const std::string& policy, Observer* observer,
                               int64_t token_count_max);

  v41::Model& model() { return *model_; }
  SequenceState& state() { return *state_; }

  // Appends `tokens` in pieces of `chunk` (0: as one) and returns the logits of the positions from
  // `logits_from` on. What these can't see is left out of the decoder layers (spec §3.11).
  Result<std::vector<float>> run(std::span<const InputToken> tokens, int64_t chunk = 0,
                                 int64_t logits_from = 0);
  Result<std::vector<float>> run(std::span<const TokenId> ids, int64_t chunk = 0,
                                 int64_t logits_from = 0);

 private:
  std::unique_ptr<v41::Model> model_;
  std::unique_ptr<SequenceState> state_;
};

}  // namespace fathom::verify
