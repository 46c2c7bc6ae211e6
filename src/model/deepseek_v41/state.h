// What a sequence remembers between steps (spec §8.1): window rows of every layer, compressed rows
// and index keys of the kv sources, the unfinished group, the last compressed ids for the Engram.
// Every entry is a function of absolute positions, so any cutting of a prompt gives the same state.
// Made by Model::new_sequence, used by the engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/policy.h"
#include "model/blocks/cache_rows.h"
#include "model/deepseek_v41/config.h"
#include "model/language_model.h"

namespace fathom::v41 {

// The compressor's projections of the newest tokens (k or g, §3.5): those whose group is not full
// yet, and before them as many as a truncate may bring back.
class GroupTail {
 public:
  void reserve(int64_t cols, int64_t rows_max);
  void append(MatrixView<const float> rows);
  void drop_newest(int64_t count);
  // The last `count` rows, oldest first. They must be held.
  MatrixView<const float> newest(int64_t count) const;

 private:
  int64_t cols_ = 0;
  int64_t rows_max_ = 0;
  std::vector<float> rows_;  // f32 in every policy
};

// What a kv source layer keeps. Row j stands for tokens j·ratio ... j·ratio + ratio - 1.
struct SourceState {
  int32_t ratio = 1;
  CacheRows compressed_kv;  // [n / ratio, Hd]
  CacheRows index_k;        // [n / ratio, Id]
  GroupTail k;              // of a ratio above 1
  GroupTail g;
};

// What a sequence may be asked to remember beyond the backbone.
struct StateSizes {
  int64_t token_count_max = 0;
  int64_t step_rows_max = 0;      // positions a step
  int64_t draft_stages = 0;       // DSpark stages; 0: no drafter
  int64_t truncate_rows_max = 0;  // positions that truncate() may forget
};

class State : public SequenceState {
 public:
  static Result<std::unique_ptr<State>> create(const TextConfig& config,
                                               const kernels::Policy& policy,
                                               const StateSizes& sizes);

  int64_t token_count() const override { return token_count_; }
  int64_t bytes() const override;
  Status truncate(int64_t token_count) override;
  int64_t bytes_max() const;  // when every cache is full
  int64_t token_count_max() const { return sizes_.token_count_max; }

  // Of a layer, or of DSpark stage i as layer L + i.
  WindowRows& window(int32_t layer) { return windows_[static_cast<size_t>(layer)]; }
  // M of the last positions (§7.2) [., targets · D], for the stages' windows. None: no drafter.
  WindowRows* main_hidden() { return main_hidden_ ? &*main_hidden_ : nullptr; }
  // `layer` is a kv source.
  SourceState& source(int32_t layer) { return *sources_[static_cast<size_t>(layer)]; }

  // Compressed ids (kernels/engram.h) of the last positions, oldest first: at least the n-gram - 1
  // that the next position looks back on.
  const std::vector<int32_t>& history() const { return history_; }

  // Logits are never wanted for positions before this one: rows that only they need may be missing.
  int64_t logits_from() const { return logits_from_; }
  void promise_logits_from(int64_t position) { logits_from_ = position; }

  // The step's rows are in every cache: `ids` are their compressed ids, empty without Engram.
  void commit(int64_t row_count, std::span<const int32_t> ids);

 private:
  template <typename Bytes>
  int64_t sum_of_caches(const Bytes& bytes) const;

  StateSizes sizes_;
  int64_t token_count_ = 0;
  int64_t step_begin_ = 0;  // token_count_ before the last step
  int64_t logits_from_ = 0;
  int64_t history_max_ = 0;
  std::vector<WindowRows> windows_;  // [L + stages]
  std::optional<WindowRows> main_hidden_;
  std::vector<std::unique_ptr<SourceState>> sources_;  // [L]; null: not a kv source
  std::vector<int32_t> history_;
};

}  // namespace fathom::v41
