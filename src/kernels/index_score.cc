#include "kernels/index_score.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/cpu/lanes/index_score.h"
#include "kernels/dispatch.h"
#include "tensor/codec.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kLanes = 16;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// Sixteen keys from `first`, as [dim][16]; lanes past the last key are zero.
void transpose_keys(const RowsView& keys, int64_t first, float* keys_t) {
  const int64_t count = std::min(kLanes, keys.rows - first);
  std::fill_n(keys_t, keys.cols * kLanes, 0.0f);
  for (int64_t lane = 0; lane < count; ++lane) {
    const int64_t at = (first + lane) * keys.stride;
    for (int64_t d = 0; d < keys.cols; ++d) {
      keys_t[d * kLanes + lane] = keys.dtype == DType::kBF16
                                      ? bf16_to_f32(static_cast<const uint16_t*>(keys.data)[at + d])
                                      : static_cast<const float*>(keys.data)[at + d];
    }
  }
}

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
  const auto score_keys = FATHOM_PICK(context.isa, index_score_keys);
  Scratch scratch(context.workspace);
  float* keys_t = scratch.take<float>(dim * kLanes * context.pool.thread_count());
  float* weight = scratch.take<float>(args.q.rows * heads);
  for (int64_t t = 0; t < args.q.rows; ++t)
    for (int64_t h = 0; h < heads; ++h) weight[t * heads + h] = args.weight.row(t)[h] * args.kappa;
  const int64_t blocks = (args.score.cols + kLanes - 1) / kLanes;
  context.pool.parallel_for(blocks, [&](int64_t block, int thread) {
    float* own = keys_t + dim * kLanes * thread;
    const int64_t first = block * kLanes;
    const int64_t count = std::min(kLanes, args.score.cols - first);
    transpose_keys(args.keys, first, own);
    for (int64_t t = 0; t < args.q.rows; ++t) {
      float lanes[kLanes];
      const int64_t seen = std::clamp<int64_t>(args.visible[t] - first, 0, count);
      if (seen > 0) score_keys(args.q.row(t).data(), weight + t * heads, own, heads, dim, lanes);
      float* out = &args.score.row(t)[first];
      std::copy_n(lanes, seen, out);
      std::fill(out + seen, out + count, kNever);
    }
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
