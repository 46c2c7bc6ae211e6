// The model's fake-quantisers: activations, window rows, compressed rows, index vectors. Spec §3.8.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace fathom::kernels {

enum class Quantiser {
  kFp8Block32,  // fq8_32: E4M3 values, a power of two per 32. Activations, window rows
  kFp4Block32,  // fq4_32: E2M1 values, a power of two per 32. Index queries and keys
  kFp4Block16,  // fq4_16: E2M1 values, an E4M3 scale per 16. Compressed rows
};

int64_t quantiser_block(Quantiser quantiser);  // 32, 32, 16

//   x  [T, C]  f32       C a multiple of the block
//   y  [T, C]  f32  out  code · scale, exact in bf16; may be x itself
// Against ref: equal.
struct QuantiseArgs {
  MatrixView<const float> x;
  MatrixView<float> y;
  Quantiser quantiser = Quantiser::kFp8Block32;
};
void quantise(const Context& context, const QuantiseArgs& args);

// The stored form of one row, for compact caches and checks; plain C++, not hot.
//   codes   kFp8Block32: C bytes of E4M3; FP4: C / 2 bytes, low nibble = even channel
//   scales  C / block bytes: E8M0 (…Block32) or E4M3 (kFp4Block16)
void quantise_row_codes(Quantiser quantiser, std::span<const float> x, std::span<uint8_t> codes,
                        std::span<uint8_t> scales);

namespace ref {
void quantise(const QuantiseArgs& args);
}

}  // namespace fathom::kernels
