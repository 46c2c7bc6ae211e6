#include "kernels/index_score.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/cpu/lanes/index_score.h"
#include "kernels/dispatch.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kLanes = 16;
// Keys of one work item: 64 KB when transposed, so that they stay in L2 while all queries pass, and
// a query stays in L1 while the keys pass.
constexpr int64_t kTileKeys = 128;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// Orders like (score descending, position ascending); the two zeros are one score.
uint64_t rank_key(float score, int64_t position) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);
  const uint32_t ascending = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
  return (static_cast<uint64_t>(~ascending) << 32) | static_cast<uint32_t>(position);
}

int64_t position_of(uint64_t key) {
  return static_cast<int64_t>(key & 0xffffffffu);
}

// Moves the `wanted` first keys of `count` to the front, in no order; returns how many there are.
int64_t keep_first(uint64_t* keys, int64_t count, int64_t wanted) {
  if (count <= wanted) return count;
  std::nth_element(keys, keys + wanted, keys + count);
  return wanted;
}

void candidate_row(const CandidateBlocksArgs& args, int64_t t, uint64_t* keys) {
  const auto keep = args.keep.row(t);
  std::fill(keep.begin(), keep.end(), uint8_t{0});
  const int64_t visible = args.visible[t];
  if (visible == 0) return;
  const int64_t newest = (visible - 1) / args.block_size;
  int64_t count = 0;
  for (int64_t block = 0; block <= newest; ++block) {
    const int64_t end = std::min((block + 1) * args.block_size, visible);
    float best = kNever;
    for (int64_t j = block * args.block_size; j < end; ++j)
      best = std::max(best, args.score.row(t)[j]);
    if (block == newest) best = std::numeric_limits<float>::infinity();
    if (best > kNever) keys[count++] = rank_key(best, block);
  }
  const int64_t kept = keep_first(keys, count, args.blocks_max);
  for (int64_t i = 0; i < kept; ++i) keep[position_of(keys[i])] = 1;
}

void select_row(const SelectTopArgs& args, int64_t t, uint64_t* keys) {
  const auto index = args.index.row(t);
  const auto score = args.score.row(t);
  int64_t count = 0;
  for (int64_t j = 0; j < args.visible[t]; ++j) {
    if (args.candidates.data && !args.candidates.row(t)[j / args.block_size]) continue;
    if (score[j] > kNever) keys[count++] = rank_key(score[j], j);
  }
  const int64_t kept = keep_first(keys, count, args.index.cols);
  for (int64_t i = 0; i < kept; ++i) index[i] = static_cast<int32_t>(position_of(keys[i]));
  std::sort(index.begin(), index.begin() + kept);
  std::fill(index.begin() + kept, index.end(), -1);
}

void check_visible(MatrixView<const float> score, std::span<const int64_t> visible) {
  FATHOM_CHECK(static_cast<int64_t>(visible.size()) == score.rows, "{} visible counts, {} rows",
               visible.size(), score.rows);
  for (int64_t count : visible)
    FATHOM_CHECK(count >= 0 && count <= score.cols, "{} of {} groups visible", count, score.cols);
}

// keys_t [tile][dim][16] = the keys from `first`, transposed sixteen by sixteen.
void transpose_tile(Isa isa, const RowsView& keys, int64_t first, int64_t count, float* keys_t) {
  const auto transpose_bf16 = FATHOM_PICK(isa, transpose_keys_bf16);
  const auto transpose_f32 = FATHOM_PICK(isa, transpose_keys_f32);
  for (int64_t j = 0; j < count; j += kLanes) {
    const int64_t at = (first + j) * keys.stride;
    const int64_t lanes = std::min(kLanes, count - j);
    float* to = keys_t + j * keys.cols;
    if (keys.dtype == DType::kBF16) {
      transpose_bf16(static_cast<const uint16_t*>(keys.data) + at, keys.stride, lanes, keys.cols,
                     to);
    } else {
      transpose_f32(static_cast<const float*>(keys.data) + at, keys.stride, lanes, keys.cols, to);
    }
  }
}

// Scores of all queries for the keys of one tile; `weight` has kappa in it.
void score_tile(Isa isa, const IndexScoreArgs& args, MatrixView<const float> weight, int64_t first,
                float* keys_t) {
  const auto score_keys = FATHOM_PICK(isa, index_score_keys);
  const int64_t count = std::min(kTileKeys, args.score.cols - first);
  transpose_tile(isa, args.keys, first, count, keys_t);
  for (int64_t t = 0; t < args.q.rows; ++t) {
    float* out = &args.score.row(t)[first];
    const int64_t seen = std::clamp<int64_t>(args.visible[t] - first, 0, count);
    for (int64_t j = 0; j < seen; j += kLanes) {
      float lanes[kLanes];
      score_keys(args.q.row(t).data(), weight.row(t).data(), keys_t + j * args.keys.cols,
                 weight.cols, args.keys.cols, lanes);
      std::copy_n(lanes, std::min(kLanes, seen - j), out + j);
    }
    std::fill(out + seen, out + count, kNever);
  }
}

// Runs row(t, keys) on the pool with `slots` keys of scratch for each thread.
template <typename Row>
void for_rows_with_keys(const Context& context, int64_t rows, int64_t slots, const Row& row) {
  Scratch scratch(context.workspace);
  uint64_t* keys = scratch.take<uint64_t>(slots * context.pool.thread_count());
  context.pool.parallel_for(rows, [&](int64_t t, int thread) { row(t, keys + slots * thread); });
}

}  // namespace

void index_score(const Context& context, const IndexScoreArgs& args) {
  const int64_t heads = args.weight.cols;
  const int64_t dim = args.keys.cols;
  check_visible(args.score, args.visible);
  FATHOM_CHECK(args.q.rows == args.score.rows && args.q.cols == heads * dim &&
                   args.weight.rows == args.q.rows && args.keys.rows >= args.score.cols,
               "q [{}, {}], {} heads, keys [{}, {}], score [{}, {}]", args.q.rows, args.q.cols,
               heads, args.keys.rows, dim, args.score.rows, args.score.cols);
  if (context.isa == Isa::kRef) return ref::index_score(args);
  Scratch scratch(context.workspace);
  float* keys_t = scratch.take<float>(dim * kTileKeys * context.pool.thread_count());
  const MatrixView<float> weight(scratch.take<float>(args.q.rows * heads), args.q.rows, heads);
  for (int64_t t = 0; t < args.q.rows; ++t)
    for (int64_t h = 0; h < heads; ++h) weight.row(t)[h] = args.weight.row(t)[h] * args.kappa;
  const int64_t tiles = (args.score.cols + kTileKeys - 1) / kTileKeys;
  context.pool.parallel_for(tiles, [&](int64_t tile, int thread) {
    score_tile(context.isa, args, weight, tile * kTileKeys, keys_t + dim * kTileKeys * thread);
  });
}

void candidate_blocks(const Context& context, const CandidateBlocksArgs& args) {
  check_visible(args.score, args.visible);
  FATHOM_CHECK(args.block_size > 0 && args.keep.rows == args.score.rows &&
                   args.keep.cols * args.block_size >= args.score.cols,
               "keep [{}, {}], score [{}, {}], blocks of {}", args.keep.rows, args.keep.cols,
               args.score.rows, args.score.cols, args.block_size);
  if (context.isa == Isa::kRef) return ref::candidate_blocks(args);
  for_rows_with_keys(context, args.score.rows, args.keep.cols,
                     [&](int64_t t, uint64_t* keys) { candidate_row(args, t, keys); });
}

void select_top(const Context& context, const SelectTopArgs& args) {
  check_visible(args.score, args.visible);
  FATHOM_CHECK(args.index.rows == args.score.rows, "index has {} rows, score {}", args.index.rows,
               args.score.rows);
  if (context.isa == Isa::kRef) return ref::select_top(args);
  for_rows_with_keys(context, args.score.rows, args.score.cols,
                     [&](int64_t t, uint64_t* keys) { select_row(args, t, keys); });
}

}  // namespace fathom::kernels
