// Attention of the vision tower against ref, and the promise that tiles do not show. Spec §6.3.
#include "kernels/vision_attention.h"

#include <fmt/format.h>

#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

// q, k and v are slices of one buffer, as the tower has them.
struct Qkv {
  int64_t width;
  Matrix<float> qkv;
  Qkv(int64_t patches, int64_t heads, int64_t head_dim)
      : width(heads * head_dim), qkv(random_matrix(patches, 3 * width, 1)) {}
  MatrixView<const float> part(int64_t i) {
    return {qkv.values.data() + i * width, qkv.rows, width, qkv.stride};
  }
};

std::vector<float> run(const Context& context, Qkv& in, VisionAttentionArgs args) {
  Matrix<float> y(in.qkv.rows, in.width, 3);
  args.q = in.part(0);
  args.k = in.part(1);
  args.v = in.part(2);
  args.scale = 1 / std::sqrt(static_cast<float>(args.head_dim));
  args.y = y;
  vision_attention(context, args);
  std::vector<float> out;
  append<float>(out, y);
  return out;
}

VisionAttentionArgs shaped(int64_t head_dim, int64_t query_tile) {
  VisionAttentionArgs args;
  args.head_dim = head_dim;
  args.query_tile = query_tile;
  return args;
}

TEST(VisionAttention, GridOfShapes) {
  struct Shape {
    int64_t patches, heads, head_dim;
  };
  for (auto [patches, heads, head_dim] :
       {Shape{1, 1, 16}, Shape{15, 4, 16}, Shape{33, 2, 64}, Shape{100, 2, 64}, Shape{257, 1, 80},
        Shape{301, 2, 32}}) {
    Qkv in(patches, heads, head_dim);
    for (bool round : {false, true}) {
      for (bool round_p : {false, true}) {
        // As the text core without a cache. A rounded probability that flips moves y by 2^-9 of
        // its share.
        const Tolerance tolerance = {.absolute = round_p ? 1e-3 : 1.6e-5,
                                     .flips_ppm = round ? 4000 : 0};
        const auto what = fmt::format("vision {} patches {}x{} round {} {}", patches, heads,
                                      head_dim, round, round_p);
        expect_grid(what, tolerance, [&](const Context& context) {
          VisionAttentionArgs args = shaped(head_dim, 0);
          args.round_bf16 = round;
          args.round_probabilities = round_p;
          return run(context, in, args);
        });
      }
    }
  }
}

TEST(VisionAttention, TheQueryTileDoesNotShow) {
  // 1, 2, 3 and 6 tiles of 64 queries, the last one ragged.
  for (int64_t patches : {50, 100, 150, 370}) {
    Qkv in(patches, 2, 32);
    for (Isa isa : available_isas()) {
      if (isa == Isa::kRef) continue;
      const auto with_tile = [&](int64_t tile) {
        return run_on([&](const Context& c) { return run(c, in, shaped(32, tile)); }, isa, 2);
      };
      const auto whole = with_tile(0);
      for (int64_t tile : {1, 7, 64, 1000})
        expect_same_bits(with_tile(tile), whole, fmt::format("{} tile {}", isa_name(isa), tile));
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
