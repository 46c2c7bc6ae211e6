#include "kernels/cpu/lanes/vision_tile.h"

#include "kernels/cpu/vec16.h"

namespace fathom::kernels::FATHOM_ISA {
namespace {

using cpu::kVisionKeyBlock;
using cpu::kVisionLanes;
using cpu::VisionBlock;

// Rows and vectors of a register tile: sums, one set of loads and a splat fit into the registers.
#if FATHOM_ISA_BITS == 512
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;
#else
constexpr int kTileRows = 3;
constexpr int kTileVectors = 2;
#endif

// sum[r][c] = Σ_k a[r][k] · b[k][c], k in pairs, the odd one first. b's vector c of step k stands
// at b + k·b_step + c·b_vector.
struct Product {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_step;
  int64_t b_vector;
  int64_t steps;  // even
};

template <int kRows, int kVectors>
FATHOM_INLINE void multiply(const Product& args, F16 (&sum)[kRows][kVectors]) {
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kVectors; ++c) sum[r][c] = splat(0.0f);
  for (int64_t pair = 0; pair < args.steps; pair += 2) {
    for (int64_t k = pair + 1; k >= pair; --k) {
      F16 b[kVectors];
      for (int c = 0; c < kVectors; ++c) b[c] = load(args.b + k * args.b_step + c * args.b_vector);
      for (int r = 0; r < kRows; ++r) {
        const F16 a = splat(args.a[r * args.a_stride + k]);
        for (int c = 0; c < kVectors; ++c) sum[r][c] = sum[r][c] + a * b[c];
      }
    }
  }
}

// Calls Tile::run<rows, vectors>(row, vector) so that all rows × vectors are covered.
template <typename Tile>
FATHOM_INLINE void cover(const Tile& tile, int64_t rows, int64_t vectors) {
  int64_t vector = 0;
  for (; vector + kTileVectors <= vectors; vector += kTileVectors) {
    int64_t row = 0;
    for (; row + kTileRows <= rows; row += kTileRows)
      tile.template run<kTileRows, kTileVectors>(row, vector);
    for (; row < rows; ++row) tile.template run<1, kTileVectors>(row, vector);
  }
  for (; vector < vectors; ++vector)
    for (int64_t row = 0; row < rows; ++row) tile.template run<1, 1>(row, vector);
}

struct ScoreTile {
  const VisionBlock<float>& block;

  template <int kRows, int kVectors>
  FATHOM_INLINE_MEMBER void run(int64_t row, int64_t vector) const {
    F16 sum[kRows][kVectors];
    multiply<kRows, kVectors>({.a = block.q + row * block.dims,
                               .a_stride = block.dims,
                               .b = block.keys + vector * kVisionLanes * block.dims,
                               .b_step = kVisionLanes,
                               .b_vector = kVisionLanes * block.dims,
                               .steps = block.dims},
                              sum);
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kVectors; ++c)
        store(block.score + (row + r) * kVisionKeyBlock + (vector + c) * kVisionLanes, sum[r][c]);
  }
};

struct ValueTile {
  const VisionBlock<float>& block;

  template <int kRows, int kVectors>
  FATHOM_INLINE_MEMBER void run(int64_t row, int64_t vector) const {
    F16 sum[kRows][kVectors];
    multiply<kRows, kVectors>({.a = block.p + row * kVisionKeyBlock,
                               .a_stride = kVisionKeyBlock,
                               .b = block.values + vector * kVisionLanes,
                               .b_step = block.dims,
                               .b_vector = kVisionLanes,
                               .steps = (block.key_count + 1) / 2 * 2},
                              sum);
    for (int r = 0; r < kRows; ++r) {
      const F16 decay = splat(block.decay[row + r]);
      for (int c = 0; c < kVectors; ++c) {
        float* y = block.y + (row + r) * block.dims + (vector + c) * kVisionLanes;
        store(y, load(y) * decay + sum[r][c]);
      }
    }
  }
};

// 2^x for x <= 0, within 2 ulp; 0 below -40, which no sum of f32 can tell from what it is.
FATHOM_INLINE F16 exp2_of(F16 x) {
  const F16 floor = splat(-40.0f);
  const F16 bounded = max_of(floor, x);
  const I16 n = round_to_int(bounded);
  const F16 f = bounded - to_float(n);
  F16 p = splat(1.32647261e-3f);  // minimax on [-1/2, 1/2] with p(0) = 1
  p = p * f + splat(9.67151299e-3f);
  p = p * f + splat(5.55073358e-2f);
  p = p * f + splat(2.40222424e-1f);
  p = p * f + splat(6.93147004e-1f);
  p = p * f + splat(1.0f);
  return select(less(x, floor), splat(0.0f), float_of(bits_of(p) + shl<23>(n)));
}

FATHOM_INLINE void store_p(float* to, F16 p, bool round) {
  store(to, rounded_if(p, round));
}
// round_bf16 without its care for NaN and infinity: p is in [0, 1]. (A NaN score makes `total` NaN,
// so p does not matter then.)
FATHOM_INLINE void store_p(uint16_t* to, F16 p, bool) {
  const I16 bits = bits_of(p);
  store_bf16_bits(to, float_of(bits + splat_int(0x7fff) + (shr<16>(bits) & splat_int(1))));
}

template <typename T>
FATHOM_INLINE void weigh_row(const VisionBlock<T>& block, int64_t row) {
  float* score = block.score + row * kVisionKeyBlock;
  T* p = block.p + row * kVisionKeyBlock;
  const int64_t padded = (block.key_count + kVisionLanes - 1) / kVisionLanes * kVisionLanes;
  for (int64_t j = block.key_count; j < padded; ++j) score[j] = -__builtin_inff();
  F16 best = splat(block.best[row]);
  for (int64_t j = 0; j < padded; j += kVisionLanes) best = max_of(best, load(score + j));
  const float new_best = max_across(best);
  const F16 shift = splat(new_best);
  const F16 scale = splat(block.scale_log2);
  F16 sum = splat(0.0f);
  for (int64_t j = 0; j < padded; j += kVisionLanes) {
    const F16 value = exp2_of((load(score + j) - shift) * scale);
    sum = sum + value;
    store_p(p + j, value, block.round_probabilities);
  }
  float decay[kVisionLanes];
  store(decay, exp2_of((splat(block.best[row]) - shift) * scale));
  block.decay[row] = decay[0];
  block.total[row] = block.total[row] * decay[0] + sum_of(sum);
  block.best[row] = new_best;
}

}  // namespace

void vision_score(const VisionBlock<float>& block) {
  const int64_t vectors = (block.key_count + kVisionLanes - 1) / kVisionLanes;
  cover(ScoreTile{block}, block.rows, vectors);
}

void vision_weigh(const VisionBlock<float>& block) {
  for (int64_t row = 0; row < block.rows; ++row) weigh_row(block, row);
}

void vision_weigh_pairs(const VisionBlock<uint16_t>& block) {
  for (int64_t row = 0; row < block.rows; ++row) weigh_row(block, row);
}

void vision_add_values(const VisionBlock<float>& block) {
  cover(ValueTile{block}, block.rows, block.dims / kVisionLanes);
}

}  // namespace fathom::kernels::FATHOM_ISA
