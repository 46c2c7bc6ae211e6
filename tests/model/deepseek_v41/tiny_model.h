// Opens the tiny golden checkpoints for tests: every mechanism is on, weights from a seed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "io/safetensors.h"
#include "model/deepseek_v41/checkpoint.h"
#include "model/deepseek_v41/model.h"

namespace fathom::v41 {

inline std::string golden_path(const std::string& name) {
  return std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + name;
}

// The stub tokenizer writes 2k as "w{k}" and 2k + 1 as " W{k}": they share a compressed id.
inline std::vector<int32_t> stub_token_map() {
  std::vector<int32_t> map;
  for (int32_t id = 0; id < 512; ++id) map.push_back(id / 2);
  return map;
}

inline std::shared_ptr<Checkpoint> open_golden(const std::string& folder) {
  auto checkpoint = Checkpoint::open(golden_path(folder) + "/checkpoint");
  EXPECT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  return checkpoint.is_ok() ? std::shared_ptr<Checkpoint>(std::move(checkpoint).value()) : nullptr;
}

inline std::unique_ptr<Model> make_model(const std::shared_ptr<Checkpoint>& checkpoint,
                                         ThreadPool& pool, ModelOptions options) {
  options.token_map = stub_token_map();
  auto model = Model::create(checkpoint, pool, std::move(options));
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return model.is_ok() ? std::move(model).value() : nullptr;
}

// `ids` through the model in pieces of `chunk` (0: whole), logits of all positions >= logits_from.
inline std::vector<float> run_ids(Model& model, SequenceState& state, std::span<const TokenId> ids,
                                  int64_t chunk, int64_t logits_from) {
  std::vector<InputToken> tokens;
  for (const TokenId id : ids) tokens.push_back({.token = id});
  std::vector<float> all;
  const size_t step = chunk == 0 ? tokens.size() : static_cast<size_t>(chunk);
  for (size_t first = 0; first < tokens.size(); first += step) {
    SequenceRows rows;
    rows.state = &state;
    rows.tokens = std::span(tokens).subspan(first, std::min(step, tokens.size() - first));
    rows.logits_from = logits_from;
    std::vector<float> logits;
    const Status status = model.forward(std::span(&rows, 1), nullptr, &logits);
    EXPECT_TRUE(status.is_ok()) << status.message();
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

inline std::vector<float> run_alone(Model& model, std::span<const TokenId> ids, int64_t chunk = 0,
                                    int64_t logits_from = 0) {
  auto state = model.new_sequence(static_cast<int64_t>(ids.size()));
  EXPECT_TRUE(state.is_ok()) << state.status().message();
  return run_ids(model, **state, ids, chunk, logits_from);
}

}  // namespace fathom::v41
