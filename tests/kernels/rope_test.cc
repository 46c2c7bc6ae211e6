#include "kernels/rope.h"

#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

// All words of spec §3.3: a chain in double, or a pow that is not correctly rounded, differs in
// some.
constexpr uint32_t kMain[32] = {
    0x3f800000, 0x3f3ff911, 0x3f0ff59a, 0x3ed7e89b, 0x3ea1e89b, 0x3e72d423, 0x3e361887, 0x3e088d77,
    0x3dcccccd, 0x3d99940d, 0x3d6655c2, 0x3d2cba15, 0x3d0186e3, 0x3cc2434f, 0x3c91ad39, 0x3c5a7bf2,
    0x3c23d70a, 0x3bf5b9b0, 0x3bb8449c, 0x3b8a2e77, 0x3b4f3e38, 0x3b1b690d, 0x3ae91528, 0x3aaec98e,
    0x3a83126f, 0x3a44948c, 0x3a136a16, 0x39dd1725, 0x39a5cb60, 0x3978a815, 0x393a7753, 0x390bd472};
constexpr uint32_t kCompress[32] = {
    0x3f800000, 0x3f300a3a, 0x3ef21c1f, 0x3ea67d01, 0x3e64f92e, 0x3e1d7475, 0x3dd88cb4, 0x3d94e963,
    0x3d4ccccd, 0x3d0cd4fb, 0x3cc1b019, 0x3c8530ce, 0x3c372dbf, 0x3bfbed88, 0x3bad3d5e, 0x3b6e4237,
    0x3b147ae1, 0x3ab714e0, 0x3a5ebdb6, 0x3a0530ce, 0x399bb3af, 0x39305978, 0x38be904d, 0x383e9b5f,
    0x37a3d70c, 0x36b443d0, 0x3677eba6, 0x362a7be8, 0x35ea77ff, 0x35a13bdc, 0x355dbf30, 0x35187c4d};

const Yarn kReleasedYarn = {
    .factor = 16, .beta_fast = 32, .beta_slow = 1, .original_positions = 65536};

TEST(RopeFrequencies, AreTheReleasedWords) {
  const auto main = rope_frequencies(64, 10000, {});
  const auto compress = rope_frequencies(64, 160000, kReleasedYarn);
  ASSERT_EQ(main.size(), 32u);
  ASSERT_EQ(compress.size(), 32u);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(main[i]), kMain[i]) << "main " << i;
    EXPECT_EQ(std::bit_cast<uint32_t>(compress[i]), kCompress[i]) << "compress " << i;
  }
}

TEST(RopeTable, TurnsByTheRoundedAngle) {
  const auto frequencies = rope_frequencies(64, 160000, kReleasedYarn);
  const std::vector<int64_t> positions = {0, 1, 127, 128, 65535, 1'000'000};
  Matrix<float> table(6, 64);
  rope_table(positions, frequencies, table);
  for (int64_t t = 0; t < 6; ++t) {
    for (int64_t i = 0; i < 32; ++i) {
      // The f32 product is the angle: at a million it is up to 1/32 away from the exact one.
      const float angle = static_cast<float>(positions[t]) * frequencies[i];
      EXPECT_EQ(table.row(t)[i], static_cast<float>(std::cos(static_cast<double>(angle))));
      EXPECT_EQ(table.row(t)[32 + i], static_cast<float>(std::sin(static_cast<double>(angle))));
    }
  }
  EXPECT_EQ(table.row(0)[5], 1.0f);
  EXPECT_EQ(table.row(0)[37], 0.0f);
}

// One quarter turn: (a, b) -> (-b, a) for the pairs that each kind names.
TEST(Rope, PairsAreAdjacentOrHalves) {
  Matrix<float> table(1, 4);
  table.values = {0, 0, 1, 1};
  for (Isa isa : available_isas()) {
    ThreadPool pool(1);
    Workspace workspace;
    const Context context{pool, workspace, isa};
    Matrix<float> x(1, 6);
    x.values = {1, 2, 3, 4, 5, 6};
    rope(context, {.x = x, .head_dim = 6, .table = table});
    EXPECT_EQ(x.values, (std::vector<float>{1, 2, -4, 3, -6, 5})) << isa_name(isa);
    x.values = {1, 2, 3, 4, 5, 6};
    rope(context, {.x = x, .head_dim = 6, .table = table, .pairs = RopePairs::kHalfSplit});
    EXPECT_EQ(x.values, (std::vector<float>{1, 2, -5, -6, 3, 4})) << isa_name(isa);
  }
}

}  // namespace
}  // namespace fathom::kernels
