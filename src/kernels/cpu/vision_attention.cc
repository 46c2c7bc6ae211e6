// Packing, blocking and threads of vision_attention; the arithmetic is in lanes/vision_tile.cc.
//
// Head by head: its keys and values are packed once, then tiles of queries go over the threads,
// each with an online softmax over blocks of keys. Beside the packed head (2.2 MB as bf16 pairs for
// 8,547 patches of 64) a thread holds the scores of one tile and one block.
#include "kernels/cpu/vision_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lanes/vision_tile.h"
#include "kernels/cpu/vision_attention_avx512_bf16.h"
#include "kernels/dispatch.h"
#include "tensor/codec.h"

namespace fathom::kernels::cpu {
namespace {

// Queries that share one pass over the keys. {24, 48, 96, 192} are within 4 % of each other (8,547
// patches, 2 heads of 64, 1 thread, AVX-512 BF16).
constexpr int64_t kQueryTile = 48;
// Keys packed by one work item; even, so that no pair of values is cut.
constexpr int64_t kPackKeys = kVisionKeyBlock;

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// One head's operands in the layouts of vision_kernels.h.
template <typename T>
struct Head {
  T* keys = nullptr;
  T* values = nullptr;
  int64_t dims = 0;  // D
};

// What one thread needs for a tile.
template <typename T>
struct TileMemory {
  T* q = nullptr;
  T* p = nullptr;
  float* score = nullptr;
  float* best = nullptr;
  float* total = nullptr;
  float* decay = nullptr;
  float* y = nullptr;
};

template <typename T>
T packed(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  }
}

// Keys and values [first, first + count) of the head at `column`. Padding is left as it is.
template <typename T>
void pack_keys(const VisionAttentionArgs& args, int64_t column, int64_t first, int64_t count,
               const Head<T>& head) {
  constexpr int64_t kPair = std::is_same_v<T, float> ? 1 : 2;
  for (int64_t j = first; j < first + count; ++j) {
    const float* key = args.k.row(j).data() + column;
    const float* value = args.v.row(j).data() + column;
    T* to_key = head.keys + j / kVisionLanes * kVisionLanes * head.dims + j % kVisionLanes * kPair;
    T* to_value = head.values + j / kPair * kPair * head.dims + j % kPair;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      to_key[d / kPair * kPair * kVisionLanes + d % kPair] = packed<T>(key[d]);
      to_value[d * kPair] = packed<T>(value[d]);
    }
  }
}

// One head of one call: tiles of queries against all keys.
template <typename T>
class HeadPass {
 public:
  HeadPass(const VisionAttentionArgs& args, const VisionKernels<T>& kernels, int64_t column,
           const Head<T>& head)
      : args_(args), kernels_(kernels), column_(column), head_(head) {}

  void attend(int64_t first_query, int64_t rows, const TileMemory<T>& memory) const {
    start(first_query, rows, memory);
    VisionBlock<T> block{.q = memory.q,
                         .p = memory.p,
                         .score = memory.score,
                         .best = memory.best,
                         .total = memory.total,
                         .decay = memory.decay,
                         .y = memory.y,
                         .rows = rows,
                         .dims = head_.dims,
                         .scale_log2 = static_cast<float>(args_.scale * M_LOG2E),
                         .round_probabilities = args_.round_probabilities};
    for (int64_t j = 0; j < args_.k.rows; j += kVisionKeyBlock) {
      block.keys = head_.keys + j * head_.dims;
      block.values = head_.values + j * head_.dims;
      block.key_count = std::min(kVisionKeyBlock, args_.k.rows - j);
      kernels_.score(block);
      kernels_.weigh(block);
      kernels_.add_values(block);
    }
    finish(first_query, rows, memory);
  }

 private:
  void start(int64_t first_query, int64_t rows, const TileMemory<T>& memory) const {
    std::fill_n(memory.q, rows * head_.dims, T{});
    std::fill_n(memory.y, rows * head_.dims, 0.0F);
    std::fill_n(memory.best, rows, -INFINITY);
    std::fill_n(memory.total, rows, 0.0F);
    for (int64_t r = 0; r < rows; ++r) {
      const float* q = args_.q.row(first_query + r).data() + column_;
      for (int64_t d = 0; d < args_.head_dim; ++d) memory.q[r * head_.dims + d] = packed<T>(q[d]);
    }
  }

  void finish(int64_t first_query, int64_t rows, const TileMemory<T>& memory) const {
    for (int64_t r = 0; r < rows; ++r) {
      float* y = args_.y.row(first_query + r).data() + column_;
      for (int64_t d = 0; d < args_.head_dim; ++d) {
        const float value = memory.y[r * head_.dims + d] / memory.total[r];
        y[d] = args_.round_bf16 ? round_to_bf16(value) : value;
      }
    }
  }

  const VisionAttentionArgs& args_;
  const VisionKernels<T>& kernels_;
  int64_t column_;
  const Head<T>& head_;
};

template <typename T>
void run_heads(const Context& context, const VisionAttentionArgs& args,
               const VisionKernels<T>& kernels) {
  const int64_t keys = round_up(args.k.rows, kVisionKeyBlock);
  const int64_t tile = std::min(args.query_tile > 0 ? args.query_tile : kQueryTile, args.q.rows);
  Scratch scratch(context.workspace);
  Head<T> head{.dims = round_up(args.head_dim, kVisionLanes)};
  head.keys = scratch.take<T>(keys * head.dims);
  head.values = scratch.take<T>(keys * head.dims);
  std::fill_n(head.keys, keys * head.dims, T{});
  std::fill_n(head.values, keys * head.dims, T{});
  const int threads = context.pool.thread_count();
  auto* memory = scratch.take<TileMemory<T>>(threads);
  for (int thread = 0; thread < threads; ++thread) {
    memory[thread] = {.q = scratch.take<T>(tile * head.dims),
                      .p = scratch.take<T>(tile * kVisionKeyBlock),
                      .score = scratch.take<float>(tile * kVisionKeyBlock),
                      .best = scratch.take<float>(tile),
                      .total = scratch.take<float>(tile),
                      .decay = scratch.take<float>(tile),
                      .y = scratch.take<float>(tile * head.dims)};
  }
  for (int64_t column = 0; column < args.q.cols; column += args.head_dim) {
    context.pool.parallel_for(keys / kPackKeys, [&](int64_t item, int) {
      const int64_t first = item * kPackKeys;
      pack_keys(args, column, first, std::min(kPackKeys, args.k.rows - first), head);
    });
    const HeadPass<T> pass(args, kernels, column, head);
    const int64_t tiles = (args.q.rows + tile - 1) / tile;
    context.pool.parallel_for(tiles, [&](int64_t item, int thread) {
      const int64_t first = item * tile;
      pass.attend(first, std::min(tile, args.q.rows - first), memory[thread]);
    });
  }
}

// Whether all values are bf16; their range goes into `range`.
bool is_bf16(const Context& context, MatrixView<const float> x, MagnitudeRange& range) {
  const GemmKernels& kernels = gemm_kernels(context.isa);
  Scratch scratch(context.workspace);
  const int threads = context.pool.thread_count();
  auto* pairs = scratch.take<uint16_t>(threads * round_up(x.cols, kDotStep));
  auto* ranges = scratch.take<MagnitudeRange>(threads);
  auto* is_each = scratch.take<bool>(threads);
  std::fill_n(ranges, threads, MagnitudeRange{});
  std::fill_n(is_each, threads, true);
  context.pool.parallel_for(x.rows, [&](int64_t row, int thread) {
    uint16_t* out = pairs + thread * round_up(x.cols, kDotStep);
    if (!kernels.pack_pairs(x.row(row).data(), x.cols, out, ranges[thread]))
      is_each[thread] = false;
  });
  for (int thread = 0; thread < threads; ++thread) {
    range.smallest = std::min(range.smallest, ranges[thread].smallest);
    range.largest = std::max(range.largest, ranges[thread].largest);
  }
  return std::all_of(is_each, is_each + threads, [](bool is) { return is; });
}

// Whether VDPBF16PS may be used: there, trusted, and exact on these operands.
bool can_use_dot(const Context& context, const VisionAttentionArgs& args) {
  if (!args.round_probabilities || context.isa != Isa::kAvx512 ||
      gemm_kernels(context.isa).tile_pairs_dot == nullptr) {
    return false;
  }
  MagnitudeRange q;
  MagnitudeRange k;
  MagnitudeRange v;
  const MagnitudeRange p{.smallest = (127 - 41) << 7, .largest = 127 << 7};  // 2^-41 to 1
  return is_bf16(context, args.q, q) && is_bf16(context, args.k, k) &&
         is_bf16(context, args.v, v) && bf16_dot_is_exact(q, k) && bf16_dot_is_exact(p, v);
}

}  // namespace

void vision_attention(const Context& context, const VisionAttentionArgs& args) {
  if (args.q.rows == 0) return;
#if defined(__x86_64__)
  if (can_use_dot(context, args)) {
    run_heads<uint16_t>(context, args,
                        {.score = avx512_bf16::vision_score,
                         .weigh = avx512::vision_weigh_pairs,
                         .add_values = avx512_bf16::vision_add_values});
    return;
  }
#endif
  run_heads<float>(context, args,
                   {.score = FATHOM_PICK(context.isa, vision_score),
                    .weigh = FATHOM_PICK(context.isa, vision_weigh),
                    .add_values = FATHOM_PICK(context.isa, vision_add_values)});
}

}  // namespace fathom::kernels::cpu
