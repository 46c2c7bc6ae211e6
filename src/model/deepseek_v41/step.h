// The rows of one step: which sequence and which position each row has, and what travels with the
// rows from layer to layer. Rows of a sequence are consecutive; sequences follow one another.
// Rows only ever leave a step (trimming, spec §3.11), and only the oldest of a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/workspace.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/state.h"
#include "model/language_model.h"
#include "tensor/view.h"

namespace fathom::v41 {

// The rows of one sequence.
struct Segment {
  State* state = nullptr;
  std::span<const InputToken> tokens;  // of the whole step, before any row left
  int64_t row = 0;                     // first row in the step's matrices
  int64_t count = 0;
  int64_t position = 0;  // of the first row
  int64_t logits_from = 0;
  bool is_draft_block = false;  // every row sees the window of the first, and all rows (§7.3)
  MatrixView<int32_t> top_k;    // [count, K] groups that a row attends, from the last index source
  MatrixView<uint8_t> candidates;  // [count, blocks] from the candidate source, 1 = kept
};

// Engram table rows, known before the first layer runs because they depend on ids only.
struct EngramRows {
  std::vector<std::vector<int64_t>> of_layer;        // [engram layer][n · columns]
  std::vector<std::vector<int32_t>> compressed_ids;  // [segment][rows], for the history
};

// First position whose full block must run at `layer`, when logits are wanted from `logits_from` on
// and later positions may follow (spec §3.11). Everything before it only feeds caches.
int64_t block_from(const TextConfig& config, int32_t layer, int64_t logits_from);

class Step {
 public:
  // Allocates all of it in `scratch`. Segments need state, tokens and logits_from.
  Step(const TextConfig& config, std::vector<Segment> segments, kernels::Scratch& scratch);

  int64_t count() const { return positions_.rows; }
  std::span<Segment> segments() { return segments_; }
  std::span<const int64_t> positions() const { return positions_.row_span(); }
  std::span<const uint8_t> is_picture() const { return is_picture_.row_span(); }
  // Row of the step as it was made; for what was computed before rows left.
  std::span<const int64_t> origin() const { return origin_.row_span(); }

  MatrixView<float> streams;      // X [n, S·D]
  MatrixView<float> pre;          // [n, S] collapse weights of the next site
  EngramRows engram;              // of all rows that the step began with
  MatrixView<float> main_hidden;  // [n, targets · D] what drafts are conditioned on (§7.2)
  // (cos, sin) rows for layers of ratio 0 and for those with compressed KV, [n, R].
  MatrixView<float> rope_main;
  MatrixView<float> rope_compressed;

  // Keeps in each sequence the rows whose position is >= from(segment), in everything above and in
  // `x`, a matrix of the same rows (null: none).
  template <typename From>
  void keep(From from, MatrixView<float>* x) {
    std::vector<int64_t> kept;
    for (Segment& segment : segments_) keep_segment(&segment, from(segment), &kept);
    compact(kept, x);
  }

  void set_pre(MatrixView<const float> pre_in);

  // Every row is in every cache: the states advance.
  void commit();

 private:
  // A column of one value a row.
  template <typename T>
  struct Column {
    T* data = nullptr;
    int64_t rows = 0;
    std::span<const T> row_span() const { return {data, static_cast<size_t>(rows)}; }
  };

  void keep_segment(Segment* segment, int64_t from, std::vector<int64_t>* kept);
  void compact(std::span<const int64_t> kept, MatrixView<float>* x);

  std::vector<Segment> segments_;
  Column<int64_t> positions_;
  Column<int64_t> origin_;
  Column<uint8_t> is_picture_;
};

// Drops the rows that only feed caches from `layer` on; `x` is a matrix of the same rows.
void trim_rows(const TextConfig& config, int32_t layer, Step& step, MatrixView<float>* x);

}  // namespace fathom::v41
