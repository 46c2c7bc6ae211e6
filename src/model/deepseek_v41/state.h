// What a sequence remembers between steps (spec §8.1): window rows of every layer, compressed rows
// and index keys of the kv sources, the unfinished group, the last compressed ids for the Engram.
// Every entry is a function of absolute positions, so any cutting of a prompt gives the same state.
// Made by Model::new_sequence, used by the engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/policy.h"
#include "model/blocks/cache_rows.h"
#include "model/deepseek_v41/config.h"
#include "model/language_model.h"

namespace fathom::v41 {

// The compressor rows (k, g) of tokens whose group is not full; at most ratio - 1 of them.
struct PendingGroup {
  int64_t count = 0;
  std::vector<float> k;  // [ratio - 1, Hd], f32 in every policy
  std::vector<float> g;  // [ratio - 1, Hd]
};

// What a kv source layer keeps. Row j stands for tokens j·ratio ... j·ratio + ratio - 1.
struct SourceState {
  CacheRows compressed_kv;  // [n / ratio, Hd]
  CacheRows index_k;        // [n / ratio, Id]
  PendingGroup pending;
};

class State : public SequenceState {
 public:
  // Room for `token_count_max` positions, `step_rows_max` of them a step.
  static Result<std::unique_ptr<State>> create(const TextConfig& config,
                                               const kernels::Policy& policy,
                                               int64_t token_count_max, int64_t step_rows_max);

  int64_t token_count() const override { return token_count_; }
  int64_t bytes() const override;
  int64_t bytes_max() const;  // when every cache is full
  int64_t token_count_max() const { return token_count_max_; }

  WindowRows& window(int32_t layer) { return windows_[static_cast<size_t>(layer)]; }
  // `layer` is a kv source.
  SourceState& source(int32_t layer) { return *sources_[static_cast<size_t>(layer)]; }

  // Compressed ids (kernels/engram.h) of the last positions, oldest first, at most n-gram - 1.
  const std::vector<int32_t>& history() const { return history_; }

  // Logits are never wanted for positions before this one: rows that only they need may be missing.
  int64_t logits_from() const { return logits_from_; }
  void promise_logits_from(int64_t position) { logits_from_ = position; }

  // The step's rows are in every cache: `ids` are their compressed ids, empty without Engram.
  void commit(int64_t row_count, std::span<const int32_t> ids);

 private:
  template <typename Bytes>
  int64_t sum_of_caches(const Bytes& bytes) const;

  int64_t token_count_ = 0;
  int64_t token_count_max_ = 0;
  int64_t logits_from_ = 0;
  int64_t history_max_ = 0;
  std::vector<WindowRows> windows_;                    // [L]
  std::vector<std::unique_ptr<SourceState>> sources_;  // [L]; null: not a kv source
  std::vector<int32_t> history_;
};

}  // namespace fathom::v41
