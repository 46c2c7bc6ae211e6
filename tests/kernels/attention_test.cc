// The text attention core: near ref and the same bits on every ISA, for any cut of heads and rows.
#include "kernels/attention.h"

#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

struct Rows {
  std::vector<uint16_t> bf16;
  std::vector<float> f32;
  RowsView view;
};

Rows random_rows(DType dtype, int64_t count, int64_t dim, uint32_t seed, float tiny = 1) {
  Rows rows;
  const int64_t stride = dim + 32;
  Matrix<float> values =
      random_matrix(count, dim, seed, dtype == DType::kBF16 ? Values::kBf16 : Values::kF32);
  rows.bf16.assign(static_cast<size_t>(count * stride), 0x7fc0);  // NaN between the rows
  rows.f32.assign(static_cast<size_t>(count * stride), std::nanf(""));
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t d = 0; d < dim; ++d) {
      const float value = values.row(r)[d] * (d % 3 == 0 ? tiny : 1);
      rows.bf16[static_cast<size_t>(r * stride + d)] = f32_to_bf16(value);
      rows.f32[static_cast<size_t>(r * stride + d)] = value;
    }
  }
  const void* data = dtype == DType::kBF16 ? static_cast<const void*>(rows.bf16.data())
                                           : static_cast<const void*>(rows.f32.data());
  rows.view = {dtype, data, count, dim, stride};
  return rows;
}

struct Case {
  int64_t queries = 1;
  int64_t heads = 4;
  int64_t dim = 64;
  int64_t window = 16;    // rows that the last query sees
  int64_t selected = 24;  // list length of the last query; 0: no lists
  DType dtype = DType::kBF16;
  Values q_values = Values::kBf16;
  float tiny = 1;  // factor on a third of the row values
  bool round_bf16 = true;
};

struct Operands {
  Matrix<float> q;
  Rows window;
  Rows selected;
  std::vector<RowRange> ranges;
  Matrix<int32_t> lists;
  std::vector<float> sink;

  explicit Operands(const Case& c)
      : q(random_matrix(c.queries, c.heads * c.dim, 1, c.q_values, 1, 7)),
        window(random_rows(c.dtype, c.window + c.queries, c.dim, 2, c.tiny)),
        selected(random_rows(c.dtype, 3 * c.selected + 5, c.dim, 3, c.tiny)),
        lists(c.queries, std::max<int64_t>(c.selected, 1), 2),
        sink(random_vector(c.heads, 4)) {
    for (int64_t t = 0; t < c.queries; ++t) {
      // The first query of several sees nothing, the others more and more.
      const bool sees_all = t + 1 == c.queries;
      const int64_t count = sees_all ? c.window : c.window * t / c.queries;
      ranges.push_back({t, count});
      const int64_t listed = sees_all ? c.selected : c.selected * t / c.queries;
      for (int64_t i = 0; i < c.selected; ++i)
        lists.row(t)[i] = i < listed ? static_cast<int32_t>(3 * i + t % 3) : -1;
    }
  }
};

std::vector<float> run(const Context& context, const Case& c, Operands& operands, int64_t first,
                       int64_t count) {
  Matrix<float> y(count, c.heads * c.dim, 3);
  AttentionArgs args{
      .q = MatrixView<const float>(operands.q).rows_from(first, count),
      .head_dim = c.dim,
      .scale = 1 / std::sqrt(static_cast<float>(c.dim)),
      .window = operands.window.view,
      .window_range = std::span<const RowRange>(operands.ranges)
                          .subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
      .selected = operands.selected.view,
      .sink = operands.sink,
      .y = y,
      .round_bf16 = c.round_bf16};
  if (c.selected > 0) {
    const MatrixView<const int32_t> lists = operands.lists.view();
    args.selected_index = lists.rows_from(first, count);
  }
  attention(context, args);
  std::vector<float> out;
  append<float>(out, y);
  return out;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {.queries = 5},
      {.queries = 3, .heads = 5, .window = 17, .selected = 0},
      {.queries = 1, .heads = 1, .window = 1, .selected = 1},
      // More than one block of values; ragged tiles of rows.
      {.queries = 2, .heads = 8, .dim = 512, .window = 128, .selected = 131},
      // Rows that have to be padded, and rows and queries of f32.
      {.queries = 2, .heads = 6, .dim = 48, .window = 9, .selected = 70},
      {.queries = 2,
       .heads = 6,
       .dim = 40,
       .dtype = DType::kF32,
       .q_values = Values::kF32,
       .round_bf16 = false},
      {.queries = 2, .heads = 4, .dim = 128, .q_values = Values::kF32, .round_bf16 = false},
      // Products below the normal range: VDPBF16PS would flush them.
      {.queries = 2, .heads = 4, .dim = 128, .tiny = 1e-37f, .round_bf16 = false},
  };
  return kCases;
}

// z has an error of some 1e-6 (dot_order.h on up to 512 columns, then the scale), exp and the two
// sums add a few 2^-24 each: 4e-6 of the largest row value, as attention.h says. |row| <= 5 here.
TEST(Attention, EveryIsaIsNearRefAndGivesTheSameBits) {
  for (const Case& c : cases()) {
    Operands operands(c);
    expect_grid(fmt::format("{} queries, {} heads of {}, {}+{} rows", c.queries, c.heads, c.dim,
                            c.window, c.selected),
                {.absolute = 2e-5, .flips_ppm = c.round_bf16 ? 3000 : 0},
                [&](const Context& context) { return run(context, c, operands, 0, c.queries); });
  }
}

TEST(Attention, AQueryAloneEqualsThatQueryInABatch) {
  const Case c{.queries = 7, .heads = 8, .dim = 64, .window = 40, .selected = 30};
  Operands operands(c);
  ThreadPool pool(2);
  Workspace workspace;
  for (Isa isa : available_isas()) {
    const Context context{pool, workspace, isa};
    const std::vector<float> batch = run(context, c, operands, 0, c.queries);
    for (int64_t t = 0; t < c.queries; ++t) {
      const auto first = batch.begin() + t * c.heads * c.dim;
      expect_same_bits(run(context, c, operands, t, 1), {first, first + c.heads * c.dim},
                       std::string(isa_name(isa)));
    }
  }
}

TEST(Attention, AQueryWithoutRowsGivesZero) {
  const Case c{.queries = 2};
  Operands operands(c);
  ThreadPool pool(1);
  Workspace workspace;
  for (Isa isa : available_isas())
    for (float value : run({pool, workspace, isa}, c, operands, 0, 1)) ASSERT_EQ(value, 0.0f);
}

TEST(Attention, TheTypeOfTheCacheDoesNotMatter) {
  Case c{.queries = 2, .heads = 4, .dim = 128};
  Operands operands(c);
  ThreadPool pool(1);
  Workspace workspace;
  for (Isa isa : available_isas()) {
    const Context context{pool, workspace, isa};
    const std::vector<float> from_bf16 = run(context, c, operands, 0, 2);
    operands.window.view = {DType::kF32, operands.window.f32.data(), operands.window.view.rows,
                            c.dim, operands.window.view.stride};
    expect_same_bits(run(context, c, operands, 0, 2), from_bf16, std::string(isa_name(isa)));
    operands.window.view.dtype = DType::kBF16;
    operands.window.view.data = operands.window.bf16.data();
  }
}

TEST(Attention, TheSinkTakesItsShareAndListsEndAtMinusOne) {
  // One row of ones, z = 0: p = 1 and the sink e^s, so y = 1 / (1 + e^s) of the row.
  std::vector<float> q(32, 0.0f);
  std::vector<float> row(3 * 32, 1.0f);
  std::fill(row.begin() + 32, row.end(), 100.0f);  // rows that no list names
  std::vector<int32_t> list = {0, -1, 1};
  const std::vector<float> sink = {std::log(3.0f)};
  const std::vector<RowRange> no_window = {{0, 0}};
  const RowsView rows{DType::kF32, row.data(), 3, 32, 32};
  ThreadPool pool(1);
  Workspace workspace;
  for (Isa isa : available_isas()) {
    std::vector<float> y(32);
    attention({pool, workspace, isa}, {.q = {q.data(), 1, 32},
                                       .head_dim = 32,
                                       .window = rows,
                                       .window_range = no_window,
                                       .selected = rows,
                                       .selected_index = {list.data(), 1, 3},
                                       .sink = sink,
                                       .y = {y.data(), 1, 32}});
    for (float value : y) ASSERT_NEAR(value, 0.25f, 1e-6f) << isa_name(isa);
  }
}

}  // namespace
}  // namespace fathom::kernels
