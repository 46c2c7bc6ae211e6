// The indexer of CSA2: scores of compressed groups, candidate blocks, the top-k list. Spec §3.9.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "kernels/rows_view.h"
#include "tensor/view.h"

namespace fathom::kernels {

//   q        [T, Ih·Id]  f32       index queries, rotated and quantised
//   weight   [T, Ih]     f32       may be negative
//   kappa                          multiplied into each weight first
//   keys     [G, Id]               index keys of all groups so far
//   visible  [T]         i64       groups that row t sees, each in [0, G]
//   score    [T, G]      f32  out  Σ_h (weight[t,h]·kappa) · max(0, q_h·k_j), h ascending;
//                                  -inf for j >= visible[t]
// Dot products of quantised vectors are exact; others are summed like `linear`. Against ref: equal
// dots where exact, then Ih · 2^-24 · Σ|term|.
struct IndexScoreArgs {
  MatrixView<const float> q;
  MatrixView<const float> weight;
  float kappa = 1;
  RowsView keys;
  std::span<const int64_t> visible;
  MatrixView<float> score;
};
void index_score(const Context& context, const IndexScoreArgs& args);

// Keeps the best blocks of each row: block score = max over its groups, the block of the newest
// visible group always wins, ties go to the lower block, blocks without a visible group are left
// out.
//   score  [T, G]             f32
//   keep   [T, ceil(G/size)]  u8   out  1 = all groups of the block are candidates
// Same code on every ISA.
struct CandidateBlocksArgs {
  MatrixView<const float> score;
  std::span<const int64_t> visible;
  int64_t block_size = 8;
  int64_t blocks_max = 2048;
  MatrixView<uint8_t> keep;
};
void candidate_blocks(const Context& context, const CandidateBlocksArgs& args);

// The min(K, visible) best groups of each row, -inf left out, in ascending order; ties go to the
// lower group.
//   score       [T, G]             f32
//   candidates  [T, ceil(G/size)]  u8   optional (data null: no restriction); others count as -inf
//   index       [T, K]             i32  out  unused slots at the end are -1
// Same code on every ISA.
struct SelectTopArgs {
  MatrixView<const float> score;
  std::span<const int64_t> visible;
  MatrixView<const uint8_t> candidates = {};
  int64_t block_size = 8;
  MatrixView<int32_t> index;
};
void select_top(const Context& context, const SelectTopArgs& args);

namespace ref {
void index_score(const IndexScoreArgs& args);
void candidate_blocks(const CandidateBlocksArgs& args);
void select_top(const SelectTopArgs& args);
}  // namespace ref

}  // namespace fathom::kernels
