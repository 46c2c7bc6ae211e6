// Lists, packing and threads of the text attention core. A work item is one query and some of its
// heads: all of them in a prefill, a share of them when there are fewer queries than threads.
#include "kernels/cpu/attention.h"

#include <algorithm>

#include "kernels/cpu/attention_dot.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lanes/attention.h"
#include "kernels/dispatch.h"
#include "tensor/codec.h"

namespace fathom::kernels::cpu {
namespace {

// Heads of an item are a multiple of this, the tile height of the inner loops.
constexpr int64_t kHeadUnit = 4;
constexpr int64_t kItemsPerThread = 2;

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// What all items share.
struct Plan {
  const AttentionArgs& args;
  const GemmKernels& kernels;
  Isa isa;
  int64_t heads = 0;
  int64_t heads_per_item = 0;
  int64_t cols = 0;         // head_dim, padded
  int64_t entries_max = 0;  // padded to whole vectors
  bool is_direct = false;   // rows are bf16 in the caches and need no copy
};

struct ItemScratch {
  const void** rows;        // [entries] natural order
  const void** score_rows;  // [entries] the same, or their split copies
  float* natural;           // [entries, cols] f32 copies, unless is_direct
  float* split;             // [entries, cols] likewise
  float* q_split;           // [heads_per_item, cols]
  uint16_t* q_pairs;        // [heads_per_item, cols]
  float* z;                 // [heads_per_item, entries_max]
  float* total;             // [heads_per_item, cols]
};

const void* row_of(const RowsView& view, int64_t row) {
  const int64_t bytes = dtype_bytes(view.dtype);
  return static_cast<const uint8_t*>(view.data) + row * view.stride * bytes;
}

// A row as f32, padded with zeros, in natural order and split.
void copy_row(const Plan& plan, const RowsView& view, int64_t row, float* natural, float* split) {
  const void* from = row_of(view, row);
  const int64_t dim = plan.args.head_dim;
  for (int64_t d = 0; d < dim; ++d)
    natural[d] = view.dtype == DType::kBF16 ? bf16_to_f32(static_cast<const uint16_t*>(from)[d])
                                            : static_cast<const float*>(from)[d];
  std::fill(natural + dim, natural + plan.cols, 0.0f);
  plan.kernels.pack_split(natural, plan.cols, split);
}

// Fills the row pointers of query t; returns how many rows it attends.
int64_t list_rows(const Plan& plan, int64_t t, const ItemScratch& scratch) {
  const AttentionArgs& args = plan.args;
  int64_t count = 0;
  const auto append = [&](const RowsView& view, int64_t row) {
    if (plan.is_direct) {
      scratch.rows[count] = scratch.score_rows[count] = row_of(view, row);
    } else {
      float* natural = scratch.natural + count * plan.cols;
      float* split = scratch.split + count * plan.cols;
      copy_row(plan, view, row, natural, split);
      scratch.rows[count] = natural;
      scratch.score_rows[count] = split;
    }
    ++count;
  };
  const RowRange range = args.window_range[t];
  for (int64_t i = 0; i < range.count; ++i) append(args.window, range.first + i);
  if (args.selected_index.data == nullptr) return count;
  for (int32_t row : args.selected_index.row(t)) {
    if (row < 0) break;
    append(args.selected, row);
  }
  return count;
}

// Packs the heads' queries; whether VDPBF16PS may be used with these rows.
bool pack_queries(const Plan& plan, int64_t t, int64_t head, int64_t heads, int64_t entries,
                  const ItemScratch& scratch) {
  const int64_t dim = plan.args.head_dim;
  const float* q = plan.args.q.row(t).data() + head * dim;
  MagnitudeRange q_range;
  bool is_bf16 = plan.is_direct && plan.kernels.tile_pairs_dot != nullptr;
  for (int64_t h = 0; h < heads; ++h) {
    float* split = scratch.q_split + h * plan.cols;
    plan.kernels.pack_split(q + h * dim, dim, split);
    std::fill(split + round_up(dim, kDotStep), split + plan.cols, 0.0f);
    is_bf16 = is_bf16 &&
              plan.kernels.pack_pairs(q + h * dim, dim, scratch.q_pairs + h * plan.cols, q_range);
  }
#if defined(__x86_64__)
  return is_bf16 && bf16_dot_is_exact(
                        q_range, avx512_bf16::magnitude_of_rows(scratch.rows, entries, plan.cols));
#else
  return false;
#endif
}

void score(const Plan& plan, int64_t heads, int64_t entries, bool use_dot,
           const ItemScratch& scratch) {
  const ScoreArgs args{.q_split = scratch.q_split,
                       .q_pairs = scratch.q_pairs,
                       .rows = scratch.score_rows,
                       .heads = heads,
                       .cols = plan.cols,
                       .entries = entries,
                       .scale = plan.args.scale,
                       .z = scratch.z,
                       .z_stride = plan.entries_max};
#if defined(__x86_64__)
  if (use_dot) return avx512_bf16::attention_scores_dot(args);
#endif
  const auto scores = plan.is_direct ? FATHOM_PICK(plan.isa, attention_scores_bf16)
                                     : FATHOM_PICK(plan.isa, attention_scores_f32);
  scores(args);
}

void add_values(const Plan& plan, int64_t heads, int64_t entries, const ItemScratch& scratch) {
  const auto values = plan.is_direct ? FATHOM_PICK(plan.isa, attention_values_bf16)
                                     : FATHOM_PICK(plan.isa, attention_values_f32);
  for (int64_t e = 0; e < entries; e += kValueBlock) {
    values({.p = scratch.z + e,
            .p_stride = plan.entries_max,
            .rows = scratch.rows + e,
            .heads = heads,
            .cols = plan.cols,
            .entries = std::min(kValueBlock, entries - e),
            .total = scratch.total,
            .is_first = e == 0});
  }
}

void attend(const Plan& plan, int64_t t, int64_t head, const ItemScratch& scratch) {
  const AttentionArgs& args = plan.args;
  const int64_t heads = std::min(plan.heads_per_item, plan.heads - head);
  float* y = args.y.row(t).data() + head * args.head_dim;
  const int64_t entries = list_rows(plan, t, scratch);
  if (entries == 0) {
    std::fill(y, y + heads * args.head_dim, 0.0f);
    return;
  }
  const bool use_dot = pack_queries(plan, t, head, heads, entries, scratch);
  score(plan, heads, entries, use_dot, scratch);
  const auto softmax = FATHOM_PICK(plan.isa, attention_softmax);
  const auto finish = FATHOM_PICK(plan.isa, attention_finish);
  float* denominator = scratch.q_split;  // no longer needed
  for (int64_t h = 0; h < heads; ++h)
    denominator[h] = softmax(scratch.z + h * plan.entries_max, entries, args.sink[head + h]);
  add_values(plan, heads, entries, scratch);
  for (int64_t h = 0; h < heads; ++h)
    finish(scratch.total + h * plan.cols, denominator[h], args.head_dim, args.round_bf16,
           y + h * args.head_dim);
}

Plan make_plan(const Context& context, const AttentionArgs& args) {
  Plan plan{.args = args, .kernels = gemm_kernels(context.isa), .isa = context.isa};
  plan.heads = static_cast<int64_t>(args.sink.size());
  plan.cols = round_up(args.head_dim, kColumnUnit);
  int64_t window_max = 0;
  for (const RowRange& range : args.window_range) window_max = std::max(window_max, range.count);
  const bool has_selected = args.selected_index.data != nullptr;
  const int64_t selected_max = has_selected ? args.selected_index.cols : 0;
  plan.entries_max = round_up(std::max<int64_t>(window_max + selected_max, 1), kDotLanes);
  plan.is_direct = plan.cols == args.head_dim && args.window.dtype == DType::kBF16 &&
                   (!has_selected || args.selected.dtype == DType::kBF16);
  const int64_t items = context.pool.thread_count() * kItemsPerThread;
  const int64_t groups = args.q.rows >= items ? 1 : (items + args.q.rows - 1) / args.q.rows;
  plan.heads_per_item = round_up((plan.heads + groups - 1) / groups, kHeadUnit);
  return plan;
}

ItemScratch take_scratch(const Plan& plan, Scratch& scratch) {
  const int64_t entries = plan.entries_max;
  const int64_t copies = plan.is_direct ? 0 : entries * plan.cols;
  return {.rows = scratch.take<const void*>(entries),
          .score_rows = scratch.take<const void*>(entries),
          .natural = scratch.take<float>(copies),
          .split = scratch.take<float>(copies),
          .q_split = scratch.take<float>(plan.heads_per_item * plan.cols),
          .q_pairs = scratch.take<uint16_t>(plan.heads_per_item * plan.cols),
          .z = scratch.take<float>(plan.heads_per_item * entries),
          .total = scratch.take<float>(plan.heads_per_item * plan.cols)};
}

}  // namespace

void attention(const Context& context, const AttentionArgs& args) {
  if (args.q.rows == 0 || args.sink.empty()) return;
  const Plan plan = make_plan(context, args);
  Scratch scratch(context.workspace);
  const int64_t threads = context.pool.thread_count();
  auto* of_thread = scratch.take<ItemScratch>(threads);
  for (int64_t thread = 0; thread < threads; ++thread)
    of_thread[thread] = take_scratch(plan, scratch);
  const int64_t groups = (plan.heads + plan.heads_per_item - 1) / plan.heads_per_item;
  context.pool.parallel_for(args.q.rows * groups, [&](int64_t item, int thread) {
    attend(plan, item / groups, item % groups * plan.heads_per_item, of_thread[thread]);
  });
}

}  // namespace fathom::kernels::cpu
