// Blocking and threads of `linear`; the arithmetic is in gemm_kernels.h's implementations.
//
// x is packed once. Then each work item takes a strip of weight rows, decodes it block by block of
// K into L1 or L2 and multiplies it with all packed rows, so that a weight is read from memory once
// per 288 rows of x. Lane sums of the strip stay in L2 until K is through.
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <bit>
#include <random>
#include <span>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/gemm_pack.h"

namespace fathom::kernels::cpu {
namespace {

// Rows of x that share one decoding of the weights: best of {96, 144, 192, 288} for M = 256 with
// K = 1280..5120; their lane sums beside a strip of 16 take 288 KiB of L2.
constexpr int64_t kRowsPerPass = 288;
// Weight rows of a strip: few for few rows of x, so that the decoded block stays in L1. A single
// row is multiplied without decoding, and `finish` sums 16 outputs as fast as one.
constexpr int64_t kStripRowsFew = kGemvRows;
constexpr int64_t kStripRowsMany = 16;
constexpr int64_t kFewRows = 8;
// A work item of a GEMV reads about this much, so that handing it out costs nothing, but no less
// than 8 items a thread are made, so that the threads end together.
constexpr int64_t kItemBytes = 256 << 10;
constexpr int64_t kItemsPerThread = 8;

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

struct Pass {
  const GemmKernels& kernels;
  const LinearArgs& args;
  const PackedRows& x;
  int64_t first_row;  // of x, and of args.y
  int64_t rows;
  int64_t strip_rows;
};

void multiply_all_blocks(const Pass& pass, int64_t w_row, int64_t w_rows,
                         const BlockScratch& scratch) {
  const WeightView& weight = pass.args.weight;
  for (int64_t k = 0; k < weight.cols; k += kDotBlock) {
    const WeightBlock block{.weight = weight,
                            .row = w_row,
                            .rows = w_rows,
                            .col = k,
                            .cols = std::min(kDotBlock, weight.cols - k)};
    multiply_block(pass.kernels, pass.x, pass.rows, block, scratch);
  }
}

void multiply_strip(const Pass& pass, int64_t w_row, int64_t w_rows, const BlockScratch& scratch) {
  const LinearArgs& args = pass.args;
  if (pass.rows > 1 ||
      !multiply_one_row(pass.kernels, pass.x, args.weight, w_row, w_rows, scratch.total))
    multiply_all_blocks(pass, w_row, w_rows, scratch);
  for (int64_t r = 0; r < pass.rows; ++r) {
    pass.kernels.finish({.total = scratch.total + r * w_rows * kDotLanes,
                         .bias = args.bias ? args.bias + w_row : nullptr,
                         .count = w_rows,
                         .round_bf16 = args.round_bf16,
                         .y = args.y.row(pass.first_row + r).data() + w_row});
  }
}

// A pass cut into items for the threads, numbered on from those before it.
struct Work {
  Pass pass;
  int64_t item_rows;  // weight rows
  int64_t first_item;
  int64_t end_item;
};

Work divide(const Context& context, const Pass& pass, int64_t first_item) {
  const int64_t w_rows = pass.args.weight.rows;
  const int64_t strips = divide_up(w_rows, pass.strip_rows);
  const int64_t strip_bytes =
      std::max<int64_t>(weight_row_bytes(pass.args.weight) * pass.strip_rows, 1);
  const int64_t strips_max = divide_up(strips, context.pool.thread_count() * kItemsPerThread);
  const int64_t strips_per_item =
      pass.rows > kFewRows ? 1 : std::clamp(kItemBytes / strip_bytes, int64_t{1}, strips_max);
  const int64_t item_rows = pass.strip_rows * strips_per_item;
  return {pass, item_rows, first_item, first_item + divide_up(w_rows, item_rows)};
}

void run_item(const Work& work, int64_t item, const BlockScratch& scratch) {
  const Pass& pass = work.pass;
  const int64_t begin = (item - work.first_item) * work.item_rows;
  const int64_t end = std::min(pass.args.weight.rows, begin + work.item_rows);
  for (int64_t row = begin; row < end; row += pass.strip_rows)
    multiply_strip(pass, row, std::min(pass.strip_rows, end - row), scratch);
}

// All with the same strip_rows.
void run(const Context& context, std::span<const Pass> passes) {
  std::vector<Work> works;
  works.reserve(passes.size());
  int64_t items = 0;
  int64_t rows_max = 0;
  for (const Pass& pass : passes) {
    items = works.emplace_back(divide(context, pass, items)).end_item;
    rows_max = std::max(rows_max, pass.rows);
  }
  const int64_t strip = passes.front().strip_rows;
  const int64_t threads = context.pool.thread_count();
  Scratch scratch(context.workspace);
  auto* of_thread = scratch.take<BlockScratch>(threads);
  for (int64_t thread = 0; thread < threads; ++thread) {
    of_thread[thread] = {.pairs = scratch.take<uint16_t>(strip * kDotBlock),
                         .split = scratch.take<float>(strip * kDotBlock),
                         .x_split = scratch.take<float>(kRowsPerWidening * kDotBlock),
                         .total = scratch.take<float>(rows_max * strip * kDotLanes)};
  }
  context.pool.parallel_for(items, [&](int64_t item, int thread) {
    const auto work = std::ranges::find_if(works, [&](const Work& w) { return item < w.end_item; });
    run_item(*work, item, of_thread[thread]);
  });
}

int64_t strip_rows(int64_t rows) {
  return rows == 1 || rows > kFewRows ? kStripRowsMany : kStripRowsFew;
}

bool share_packed_rows(const LinearArgs& a, const LinearArgs& b) {
  return a.x.data == b.x.data && a.x.cols == b.x.cols && a.x.stride == b.x.stride &&
         a.quantise_activations == b.quantise_activations && a.weight.dtype == b.weight.dtype;
}

// VDPBF16PS against dot_order.h on random operands inside the allowed range: a CPU that rounds or
// orders otherwise is used without it.
bool bf16_dot_is_trustworthy(const GemmKernels& kernels) {
  constexpr int kRows = 6;
  constexpr int kCols = 4;
  constexpr int64_t kCount = 512;
  std::minstd_rand random(1);
  std::vector<uint16_t> x(kRows * kCount);
  std::vector<uint16_t> w(kCols * kCount);
  const auto draw = [&] {
    const uint32_t bits = random();
    return static_cast<uint16_t>((bits & 0x807f) | (100 + (bits >> 16) % 50) << 7);
  };
  std::generate(x.begin(), x.end(), draw);
  std::generate(w.begin(), w.end(), draw);
  std::vector<float> by_dot(kRows * kCols * kDotLanes);
  std::vector<float> by_multiply(by_dot.size());
  TileArgs<uint16_t> tile{.x = x.data(),
                          .x_stride = kCount,
                          .x_rows = kRows,
                          .w = w.data(),
                          .w_stride = kCount,
                          .w_rows = kCols,
                          .steps = kCount / kDotStep,
                          .total = by_dot.data(),
                          .total_stride = kCols,
                          .is_first = true};
  kernels.tile_pairs_dot(tile);
  tile.total = by_multiply.data();
  kernels.tile_pairs(tile);
  return std::equal(by_dot.begin(), by_dot.end(), by_multiply.begin(), [](float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  });
}

const GemmKernels& best_avx512() {
  static const bool use_dot =
      cpu_has_avx512_bf16() && bf16_dot_is_trustworthy(gemm_kernels_avx512_bf16());
  return use_dot ? gemm_kernels_avx512_bf16() : gemm_kernels_avx512();
}

}  // namespace

const GemmKernels& gemm_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return best_avx512();
  if (isa == Isa::kAvx2) return gemm_kernels_avx2();
#endif
  FATHOM_CHECK(isa == Isa::kPortable, "gemm has no kernels for {}", isa_name(isa));
  return gemm_kernels_portable();
}

void linear(const Context& context, const LinearArgs& args) {
  linear_with(gemm_kernels(context.isa), context, args);
}

void linear_with(const GemmKernels& kernels, const Context& context, const LinearArgs& args) {
  const int64_t rows = args.x.rows;
  if (rows == 0 || args.weight.rows == 0) return;
  Scratch scratch(context.workspace);
  const int64_t passes = divide_up(rows, kRowsPerPass);
  const int64_t rows_per_pass = divide_up(divide_up(rows, passes), 6) * 6;
  for (int64_t row = 0; row < rows; row += rows_per_pass) {
    const int64_t count = std::min(rows_per_pass, rows - row);
    Scratch pass_scratch(context.workspace);
    const PackedRows x = pack_rows(kernels, context, pass_scratch, args, row, count);
    const Pass pass{.kernels = kernels,
                    .args = args,
                    .x = x,
                    .first_row = row,
                    .rows = count,
                    .strip_rows = strip_rows(count)};
    run(context, {&pass, 1});
  }
}

void linear_together(const Context& context, std::span<const LinearArgs> all) {
  const int64_t rows = all.front().x.rows;
  if (rows > kFewRows) {
    for (const LinearArgs& args : all) cpu::linear(context, args);
    return;
  }
  if (rows == 0) return;
  const GemmKernels& kernels = gemm_kernels(context.isa);
  Scratch scratch(context.workspace);
  std::vector<PackedRows> packed;
  packed.reserve(all.size());
  std::vector<Pass> passes;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_shared = i > 0 && share_packed_rows(all[i - 1], all[i]);
    packed.push_back(is_shared ? packed.back()
                               : pack_rows(kernels, context, scratch, all[i], 0, rows));
    passes.push_back({.kernels = kernels,
                      .args = all[i],
                      .x = packed.back(),
                      .first_row = 0,
                      .rows = rows,
                      .strip_rows = strip_rows(rows)});
  }
  run(context, passes);
}

}  // namespace fathom::kernels::cpu
