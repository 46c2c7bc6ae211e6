// Topic: every simple op x every ISA x shapes with odd tails, against ref and against each other.
// linear and the attention cores have tests of their own.
#include <fmt/format.h>

#include "kernels/compress.h"
#include "kernels/elementwise.h"
#include "kernels/engram.h"
#include "kernels/expert_ffn.h"
#include "kernels/hyper_connection.h"
#include "kernels/quantise.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kWidths[] = {1, 15, 16, 17, 33, 64, 200, 1280};
constexpr int64_t kRowCounts[] = {1, 3, 40};

// Where both sides compute the same f32 operations on the same f32 sums.
constexpr Tolerance kEqual = {};
// Own exp is within 2 ulp (math16_test), a division and three products add half an ulp each; an f32
// result that close to a bf16 tie rounds the other way in about 4 · 2^-24 / 2^-9 = 1.2e-4 of cases.
constexpr Tolerance kExp = {.relative = 6e-7, .absolute = 1e-37, .flips_ppm = 250};

TEST(OpGrid, RmsNorm) {
  for (int64_t cols : kWidths) {
    for (int64_t rows : kRowCounts) {
      auto x = random_matrix(rows, cols, 1, Values::kBf16, 3, 5);
      const auto weight = random_vector(cols, 2);
      for (bool round : {true, false}) {
        expect_grid(fmt::format("rms_norm [{}, {}]", rows, cols), kEqual, [&](const Context& c) {
          Matrix<float> y(rows, cols, 3);
          rms_norm(c, {.x = x, .weight = weight, .eps = 1e-6f, .y = y, .round_bf16 = round});
          std::vector<float> out;
          append<float>(out, y);
          return out;
        });
      }
    }
  }
}

TEST(OpGrid, Rope) {
  const std::vector<int64_t> positions = {0, 1, 65535, 1000000, 17};
  for (RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalfSplit}) {
    for (int64_t rotary : {2, 6, 16, 30, 64}) {
      const auto frequencies = rope_frequencies(rotary, 10000, {});
      Matrix<float> table(5, rotary);
      rope_table(positions, frequencies, table);
      auto x = random_matrix(5, 3 * 70, 4, Values::kBf16, 1, 9);
      for (bool inverse : {false, true}) {
        expect_grid(fmt::format("rope {}", rotary), kEqual, [&](const Context& c) {
          Matrix<float> y = x;
          rope(c, {.x = y,
                   .head_dim = 70,
                   .table = table,
                   .pairs = pairs,
                   .inverse = inverse,
                   .round_bf16 = true});
          std::vector<float> out;
          append<float>(out, y);
          return out;
        });
      }
    }
  }
}

TEST(OpGrid, RopeInverseUndoesRope) {
  Matrix<float> table(1, 64);
  rope_table(std::vector<int64_t>{12345}, rope_frequencies(64, 160000, {}), table);
  auto x = random_matrix(1, 128, 5);
  for (Isa isa : available_isas()) {
    ThreadPool pool(1);
    Workspace workspace;
    Matrix<float> y = x;
    const Context context{pool, workspace, isa};
    rope(context, {.x = y, .head_dim = 128, .table = table});
    EXPECT_NE(y.row(0)[64], x.row(0)[64]);
    EXPECT_EQ(y.row(0)[63], x.row(0)[63]) << "channels in front of the rotary ones stay";
    rope(context, {.x = y, .head_dim = 128, .table = table, .inverse = true});
    // Two rotations in f32: 4 products and 2 sums of values up to 4.
    for (int64_t i = 0; i < 128; ++i) EXPECT_NEAR(y.row(0)[i], x.row(0)[i], 4e-6);
  }
}

TEST(OpGrid, Quantisers) {
  for (Quantiser quantiser :
       {Quantiser::kFp8Block32, Quantiser::kFp4Block32, Quantiser::kFp4Block16}) {
    for (int64_t blocks : {1, 3, 20}) {
      for (float scale : {1e-38f, 1e-5f, 1.0f, 1e30f}) {
        const int64_t cols = blocks * quantiser_block(quantiser);
        auto x = random_matrix(7, cols, 6, Values::kF32, scale, 3);
        x.row(1)[0] = -0.0f;
        std::fill_n(x.row(2), cols, 0.0f);
        expect_grid(fmt::format("quantise {} {}", cols, scale), kEqual, [&](const Context& c) {
          Matrix<float> y(7, cols, 1);
          quantise(c, {.x = x, .y = y, .quantiser = quantiser});
          std::vector<float> out;
          append<float>(out, y);
          return out;
        });
      }
    }
  }
}

struct HcShape {
  int64_t rows, streams, width;
};

TEST(OpGrid, HcMix) {
  // f32 rounding of m (2^-24 · |m|, |m| up to 5), exp, and 40 normalisations that damp it.
  constexpr Tolerance kMix = {.relative = 4e-6, .absolute = 1e-9};
  for (auto [rows, streams, width] : {HcShape{1, 4, 128}, HcShape{3, 4, 1280}, HcShape{70, 4, 33},
                                      HcShape{2, 2, 50}, HcShape{2, 3, 700}, HcShape{1, 1, 16}}) {
    const int64_t count = (2 + streams) * streams;
    auto x = random_matrix(rows, streams * width, 7, Values::kBf16, 2, 4);
    auto fn = random_matrix(count, streams * width, 8, Values::kF32,
                            1 / std::sqrt(static_cast<float>(streams * width)));
    const auto base = random_vector(count, 9, Values::kF32, 0.5f);
    const std::vector<float> scale = {1.1f, 0.9f, 1.3f};
    expect_grid(fmt::format("hc_mix {}x{}x{}", rows, streams, width), kMix, [&](const Context& c) {
      Matrix<float> pre(rows, streams), post(rows, streams), comb(rows, streams * streams);
      hc_mix(
          c,
          {.x = x, .fn = fn, .base = base, .scale = scale, .pre = pre, .post = post, .comb = comb});
      std::vector<float> out;
      append<float>(out, pre);
      append<float>(out, post);
      append<float>(out, comb);
      return out;
    });
  }
}

TEST(OpGrid, HcCollapseExpandMean) {
  for (auto [rows, streams, width] : {HcShape{1, 4, 128}, HcShape{5, 4, 33}, HcShape{40, 4, 640},
                                      HcShape{2, 8, 17}, HcShape{3, 1, 15}}) {
    auto x = random_matrix(rows, streams * width, 10);
    auto y = random_matrix(rows, width, 11);
    auto pre = random_matrix(rows, streams, 12, Values::kF32);
    auto comb = random_matrix(rows, streams * streams, 13, Values::kF32);
    for (bool round : {true, false}) {
      expect_grid(fmt::format("hc {}x{}x{}", rows, streams, width), kEqual, [&](const Context& c) {
        Matrix<float> collapsed(rows, width, 2), mean(rows, width), expanded = x;
        hc_collapse(c, {.x = x, .pre = pre, .y = collapsed, .round_bf16 = round});
        hc_mean(c, {.x = x, .y = mean, .round_bf16 = round});
        hc_expand(c, {.y = y,
                      .x = expanded,
                      .post = pre,
                      .comb = comb,
                      .out = expanded,
                      .round_bf16 = round});
        std::vector<float> out;
        append<float>(out, collapsed);
        append<float>(out, mean);
        append<float>(out, expanded);
        return out;
      });
    }
  }
}

TEST(OpGrid, PoolGroups) {
  for (int64_t ratio : {1, 2, 4}) {
    for (int64_t cols : kWidths) {
      auto k = random_matrix(3 * ratio, cols, 14, Values::kF32, 1, 2);
      auto g = random_matrix(3 * ratio, cols, 15, Values::kF32, 5, 1);
      for (bool round : {true, false}) {
        // The weights sum to 1, so errors are relative to the largest |k|, about 4.
        const Tolerance tolerance = {.relative = 1e-6, .absolute = 2e-6, .flips_ppm = 1000};
        expect_grid(fmt::format("pool {} {}", ratio, cols), tolerance, [&](const Context& c) {
          Matrix<float> y(3, cols, 1);
          pool_groups(c, {.k = k, .g = g, .ratio = ratio, .y = y, .round_bf16 = round});
          std::vector<float> out;
          append<float>(out, y);
          return out;
        });
      }
    }
  }
}

TEST(OpGrid, Swiglu) {
  for (int64_t cols : kWidths) {
    auto gate = random_matrix(5, cols, 16, Values::kBf16, 8, 2);
    auto up = random_matrix(5, cols, 17, Values::kBf16, 8);
    const auto weight = random_vector(5, 18, Values::kF32);
    for (float limit : {0.0f, 0.5f, 10.0f}) {
      for (bool round : {true, false}) {
        expect_grid(fmt::format("swiglu {} limit {}", cols, limit), kExp, [&](const Context& c) {
          Matrix<float> y(5, cols, 1), shared(5, cols);
          swiglu(c, {.gate = gate,
                     .up = up,
                     .weight = weight,
                     .limit = limit,
                     .y = y,
                     .round_bf16 = round});
          swiglu(c, {.gate = gate, .up = up, .limit = limit, .y = shared, .round_bf16 = round});
          std::vector<float> out;
          append<float>(out, y);
          append<float>(out, shared);
          return out;
        });
      }
    }
  }
}

TEST(OpGrid, SiluMulGeluAdd) {
  for (int64_t cols : kWidths) {
    auto a = random_matrix(4, cols, 19, Values::kBf16, 4, 3);
    auto b = random_matrix(4, cols, 20);
    for (bool round : {true, false}) {
      // A flip of the inner rounding moves the product by one bf16 step, so flips count twice.
      const Tolerance tolerance = {.relative = 6e-7, .absolute = 1e-37, .flips_ppm = 600};
      expect_grid(fmt::format("silu_mul {}", cols), tolerance, [&](const Context& c) {
        Matrix<float> product(4, cols, 1), gelu(4, cols), sum(4, cols, 2);
        silu_mul(c, {.gate = a, .up = b, .y = product, .round_bf16 = round});
        gelu_erf(c, {.x = a, .y = gelu, .round_bf16 = round});
        add(c, {.a = a, .b = b, .y = sum, .round_bf16 = round});
        std::vector<float> out;
        append<float>(out, product);
        append<float>(out, gelu);
        append<float>(out, sum);
        return out;
      });
    }
  }
}

TEST(OpGrid, EngramInject) {
  for (int64_t width : kWidths) {
    const int64_t streams = 4;
    auto x = random_matrix(5, streams * width, 21);
    auto kv = random_matrix(5, (streams + 1) * width, 22, Values::kBf16, 1, 3);
    const auto q = random_vector(streams * width, 23);
    const auto k = random_vector(streams * width, 24);
    const std::vector<uint8_t> dead = {0, 1, 0, 0, 1};
    // The similarity may cancel: its f32 rounding is absolute in units of 1, and the square root
    // magnifies it to at most 2^-24 / sqrt(1e-6) = 6e-5 where it is smallest.
    const Tolerance tolerance = {.relative = 2e-6, .absolute = 2e-6, .flips_ppm = 1000};
    expect_grid(fmt::format("engram {}", width), tolerance, [&](const Context& c) {
      Matrix<float> streams_x = x, gate(5, streams);
      engram_inject(c, {.x = streams_x,
                        .kv = kv,
                        .q_weight = q,
                        .k_weight = k,
                        .is_dead = dead,
                        .gate = gate,
                        .round_bf16 = true});
      EXPECT_EQ(gate.row(1)[0], 0.0f);
      EXPECT_EQ(streams_x.row(4)[0], x.row(4)[0]) << "a dead row is left as it is";
      std::vector<float> out;
      append<float>(out, gate);
      append<float>(out, streams_x);
      return out;
    });
  }
}

TEST(OpGrid, AllFiniteFindsEachBadValue) {
  for (int64_t cols : kWidths) {
    for (float bad : {INFINITY, -INFINITY, std::nanf("")}) {
      for (int64_t at : {int64_t{0}, cols / 2, cols - 1}) {
        auto x = random_matrix(3, cols, 25, Values::kF32, 1e38f * 0.1f, 4);
        for (Isa isa : available_isas()) {
          ThreadPool pool(2);
          Workspace workspace;
          const Context context{pool, workspace, isa};
          const float kept = x.row(2)[at];
          EXPECT_TRUE(all_finite(context, x)) << isa_name(isa);
          x.row(2)[at] = bad;
          EXPECT_FALSE(all_finite(context, x)) << isa_name(isa) << " " << at << " of " << cols;
          x.row(2)[at] = kept;
        }
      }
    }
  }
}

// No ISA flushes: an input or a result below 2^-126 counts as it does in ref.
TEST(OpGrid, SubnormalsAreKept) {
  auto a = random_matrix(3, 40, 28, Values::kBf16, 1e-38f);
  auto b = random_matrix(3, 40, 29, Values::kBf16, 2e-39f);
  const std::vector<float> tiny(40, 0x1p-20f);
  expect_grid("subnormals", kEqual, [&](const Context& c) {
    Matrix<float> sum(3, 40), expanded(3, 40), norm(3, 40);
    Matrix<float> half(3, 1);
    half.values = {0.5f, 0.25f, 0.125f};
    add(c, {.a = a, .b = b, .y = sum, .round_bf16 = true});
    hc_expand(c, {.y = a, .x = b, .post = half, .comb = half, .out = expanded});
    rms_norm(c, {.x = a, .weight = tiny, .eps = 1, .y = norm});
    EXPECT_NE(norm.row(0)[0], 0.0f);
    std::vector<float> out;
    append<float>(out, sum);
    append<float>(out, expanded);
    append<float>(out, norm);
    return out;
  });
}

TEST(OpGrid, NonFiniteInputsStayNonFinite) {
  for (Isa isa : available_isas()) {
    ThreadPool pool(1);
    Workspace workspace;
    const Context context{pool, workspace, isa};
    auto x = random_matrix(1, 64, 26);
    auto one = random_matrix(1, 64, 27);
    x.row(0)[40] = std::nanf("");
    Matrix<float> y(1, 64);
    const std::vector<float> weight(64, 1.0f);
    rms_norm(context, {.x = x, .weight = weight, .eps = 0, .y = y, .round_bf16 = true});
    EXPECT_FALSE(all_finite(context, y)) << "rms_norm " << isa_name(isa);
    swiglu(context, {.gate = x, .up = one, .limit = 10, .y = y, .round_bf16 = true});
    EXPECT_FALSE(all_finite(context, y)) << "swiglu gate " << isa_name(isa);
    swiglu(context, {.gate = one, .up = x, .limit = 10, .y = y, .round_bf16 = true});
    EXPECT_FALSE(all_finite(context, y)) << "swiglu up " << isa_name(isa);
    quantise(context, {.x = x, .y = y});
    EXPECT_FALSE(all_finite(context, y)) << "quantise " << isa_name(isa);
    quantise(context, {.x = x, .y = y, .quantiser = Quantiser::kFp4Block16});
    EXPECT_FALSE(all_finite(context, y)) << "quantise fp4 " << isa_name(isa);
  }
}

}  // namespace
}  // namespace fathom::kernels
