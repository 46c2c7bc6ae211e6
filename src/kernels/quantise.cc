#include "kernels/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/lanes/quantise.h"
#include "kernels/dispatch.h"
#include "kernels/quantise_scale.h"
#include "tensor/codec.h"

namespace fathom::kernels {

int64_t quantiser_block(Quantiser quantiser) {
  return quantiser == Quantiser::kFp4Block16 ? 16 : 32;
}

float block_scale(Quantiser quantiser, std::span<const float> block) {
  float largest = 0;
  for (float value : block) largest = std::max(largest, std::fabs(value));
  switch (quantiser) {
    case Quantiser::kFp8Block32:
      return power_of_two_ceil(std::max(largest, 1e-4f) * std::bit_cast<float>(0x3b124925));
    case Quantiser::kFp4Block32:
      return power_of_two_ceil(std::max(largest, 6 * 0x1p-126f) * std::bit_cast<float>(0x3e2aaaab));
    case Quantiser::kFp4Block16:
      return e4m3_to_f32(f32_to_e4m3(std::min(std::max(largest, 6 * 0x1p-9f) / 6.0f, 448.0f)));
  }
  return 0;
}

void quantise_row_codes(Quantiser quantiser, std::span<const float> x, std::span<uint8_t> codes,
                        std::span<uint8_t> scales) {
  const size_t block = static_cast<size_t>(quantiser_block(quantiser));
  const bool is_fp8 = quantiser == Quantiser::kFp8Block32;
  FATHOM_CHECK(x.size() % block == 0 && scales.size() == x.size() / block &&
                   codes.size() == (is_fp8 ? x.size() : x.size() / 2),
               "{} values, {} codes, {} scales, block {}", x.size(), codes.size(), scales.size(),
               block);
  for (size_t b = 0; b < scales.size(); ++b) {
    const auto values = x.subspan(b * block, block);
    const float scale = block_scale(quantiser, values);
    scales[b] = quantiser == Quantiser::kFp4Block16 ? f32_to_e4m3(scale) : f32_to_e8m0(scale);
    for (size_t i = 0; i < block; ++i) {
      const size_t at = b * block + i;
      if (is_fp8) {
        codes[at] = f32_to_e4m3(values[i] / scale);
        continue;
      }
      const uint8_t code = f32_to_e2m1(values[i] / scale);
      codes[at / 2] = at % 2 == 0 ? code : codes[at / 2] | static_cast<uint8_t>(code << 4);
    }
  }
}

void quantise(const Context& context, const QuantiseArgs& args) {
  FATHOM_CHECK(args.x.rows == args.y.rows && args.x.cols == args.y.cols &&
                   args.x.cols % quantiser_block(args.quantiser) == 0,
               "x [{}, {}], y [{}, {}], blocks of {}", args.x.rows, args.x.cols, args.y.rows,
               args.y.cols, quantiser_block(args.quantiser));
  if (context.isa == Isa::kRef) return ref::quantise(args);
  const auto fp8_block32 = FATHOM_PICK(context.isa, fp8_block32_row);
  const auto fp4_block32 = FATHOM_PICK(context.isa, fp4_block32_row);
  const auto fp4_block16 = FATHOM_PICK(context.isa, fp4_block16_row);
  const auto quantise_row = args.quantiser == Quantiser::kFp8Block32   ? fp8_block32
                            : args.quantiser == Quantiser::kFp4Block32 ? fp4_block32
                                                                       : fp4_block16;
  for_row_ranges(context, args.x.rows, args.x.cols, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; ++t)
      quantise_row(args.x.row(t).data(), args.y.row(t).data(), args.x.cols);
  });
}

}  // namespace fathom::kernels
