// The quantisers against hand vectors (spec §3.8) and against the official implementation's output.
#include "kernels/quantise.h"

#include "tests/kernels/golden_file.h"
#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

struct Hand {
  Quantiser quantiser;
  std::vector<float> x;  // the rest of the block is 0
  float scale;
  std::vector<float> codes;  // value / scale
};

const Hand kHand[] = {
    {Quantiser::kFp8Block32, {448}, 1, {448}},
    {Quantiser::kFp8Block32, {449}, 2, {224}},
    {Quantiser::kFp8Block32, {300}, 1, {288}},  // steps of 32 up there
    {Quantiser::kFp8Block32, {0}, 0x1p-22f, {0}},
    {Quantiser::kFp8Block32, {3, .01f, -1, .3f}, 0x1p-7f, {384, 1.25f, -128, 40}},
    {Quantiser::kFp4Block16, {7, 1, -3.5f}, 1.125f, {6, 1, -3}},
    {Quantiser::kFp4Block32, {7, 1, -3.5f}, 2, {4, .5f, -2}},
    {Quantiser::kFp4Block16, {0}, 0x1p-9f, {0}},
    {Quantiser::kFp4Block32, {0}, 0x1p-126f, {0}},
};

TEST(Quantise, HandVectors) {
  for (const Hand& hand : kHand) {
    const int64_t block = quantiser_block(hand.quantiser);
    Matrix<float> x(1, block);
    std::fill_n(x.row(0), block, 0.0f);
    std::copy(hand.x.begin(), hand.x.end(), x.row(0));
    for (Isa isa : available_isas()) {
      ThreadPool pool(1);
      Workspace workspace;
      Matrix<float> y(1, block);
      quantise({pool, workspace, isa}, {.x = x, .y = y, .quantiser = hand.quantiser});
      for (size_t i = 0; i < hand.codes.size(); ++i)
        EXPECT_EQ(y.row(0)[i], hand.codes[i] * hand.scale) << isa_name(isa) << " " << hand.x[0];
    }
    std::vector<uint8_t> codes(hand.quantiser == Quantiser::kFp8Block32 ? 32 : block / 2);
    std::vector<uint8_t> scale(1);
    quantise_row_codes(hand.quantiser, x.values, codes, scale);
    EXPECT_EQ(
        hand.quantiser == Quantiser::kFp4Block16 ? e4m3_to_f32(scale[0]) : e8m0_to_f32(scale[0]),
        hand.scale)
        << hand.x[0];
  }
}

struct GoldenQuantiser {
  const char* name;
  Quantiser quantiser;
};
const GoldenQuantiser kGolden[] = {{"fq8_32", Quantiser::kFp8Block32},
                                   {"fq4_32", Quantiser::kFp4Block32},
                                   {"fq4_16", Quantiser::kFp4Block16}};

// Zeros, -0, denormals, ties, floors, 10^38 and saturation are among its 30 rows.
TEST(Quantise, GoldenValuesCodesAndScalesAreEqual) {
  const GoldenFile golden("v41-tiny/quantisers.safetensors");
  const auto shape = golden.shape("x");
  Matrix<float> x(shape[0], shape[1]);
  std::ranges::transform(golden.read<uint16_t>("x"), x.values.begin(), bf16_to_f32);
  for (const auto& [name, quantiser] : kGolden) {
    const auto want = golden.read<uint16_t>(name);
    for (Isa isa : available_isas()) {
      ThreadPool pool(1);
      Workspace workspace;
      Matrix<float> y(shape[0], shape[1]);
      quantise({pool, workspace, isa}, {.x = x, .y = y, .quantiser = quantiser});
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(y.values[i]), static_cast<uint32_t>(want[i]) << 16)
            << name << " " << isa_name(isa) << ", value " << i << ": " << x.values[i];
      }
    }
    const auto codes = golden.read<uint8_t>(std::string(name) + ".codes");
    const auto scales = golden.read<uint8_t>(std::string(name) + ".scales");
    std::vector<uint8_t> own_codes(codes.size()), own_scales(scales.size());
    for (int64_t r = 0; r < shape[0]; ++r) {
      const size_t code_count = codes.size() / shape[0], scale_count = scales.size() / shape[0];
      quantise_row_codes(quantiser, x.view().row(r),
                         std::span(own_codes).subspan(r * code_count, code_count),
                         std::span(own_scales).subspan(r * scale_count, scale_count));
    }
    EXPECT_EQ(own_codes, codes) << name;
    EXPECT_EQ(own_scales, scales) << name;
  }
}

TEST(Quantise, TwiceIsOnce) {
  for (const auto& [name, quantiser] : kGolden) {
    if (quantiser == Quantiser::kFp4Block16) continue;  // its scale may shrink the second time
    auto x = random_matrix(20, 96, 1);
    ThreadPool pool(1);
    Workspace workspace;
    const Context context{pool, workspace, available_isas().back()};
    quantise(context, {.x = x, .y = x, .quantiser = quantiser});
    const auto once = x.values;
    quantise(context, {.x = x, .y = x, .quantiser = quantiser});
    EXPECT_EQ(x.values, once) << name;
  }
}

}  // namespace
}  // namespace fathom::kernels
