#include "kernels/cpu/gemm_pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/dispatch.h"
#include "kernels/quantise.h"
#include "tensor/codec.h"

namespace fathom::kernels::cpu {
namespace {

// Up to this many x rows a bf16 weight is used where it lies: copying it costs more than it saves.
constexpr int64_t kRowsInPlace = 4;

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t padded_cols(DType dtype, int64_t cols) {
  const int64_t unit = dtype == DType::kI8 ? kFp4Group : kDotStep;
  return divide_up(cols, unit) * unit;
}

struct ScaleRange {
  int smallest = 255;
  int largest = 0;

  void include(const uint8_t* scales, int64_t count) {
    // In vectors of the compiler's own: a GEMV looks at all its scales, one byte in 17 of FP4.
    using Bytes = uint8_t __attribute__((vector_size(16)));
    Bytes low = Bytes{} + 255;
    Bytes high = {};
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      Bytes some;
      std::memcpy(&some, scales + i, sizeof some);
      low = some < low ? some : low;
      high = some > high ? some : high;
    }
    for (int64_t lane = 0; lane < 16; ++lane) {
      smallest = std::min<int>(smallest, low[lane]);
      largest = std::max<int>(largest, high[lane]);
    }
    for (; i < count; ++i) {
      smallest = std::min<int>(smallest, scales[i]);
      largest = std::max<int>(largest, scales[i]);
    }
  }
  bool is_normal() const { return smallest >= kScaleMin && largest <= kScaleMax; }
};

// What a quantised code can be at scale 1: |v| in [2^low, 2^(high + 1)).
MagnitudeRange magnitudes(const ScaleRange& scales, int low, int high) {
  return {.smallest = static_cast<uint16_t>((scales.smallest + low) << 7),
          .largest = static_cast<uint16_t>((scales.largest + high) << 7 | 0x7f)};
}

// Whether sums of x · code, divided by one scale and multiplied by another, 2^spread apart at most,
// stay normal: x is a multiple of 2^(e - 134), a code of 2^-1 and at most 6; K < 2^20 are added.
bool fp4_gemv_is_exact(MagnitudeRange x, int spread, int64_t cols) {
  return (x.smallest >> 7) >= 9 + spread && (x.largest >> 7) + spread <= 229 && cols < 1 << 20;
}

const uint8_t* codes_at(const WeightView& weight, int64_t row, int64_t col) {
  const int64_t bytes = weight_row_bytes(weight);
  return static_cast<const uint8_t*>(weight.data) + row * bytes +
         (weight.cols == 0 ? 0 : bytes * col / weight.cols);
}

const uint8_t* scales_at(const WeightView& weight, int64_t row, int64_t col) {
  if (weight.scales == nullptr) return nullptr;
  const int64_t scale_row = weight.dtype == DType::kF8E4M3 ? row / 32 : row;
  return weight.scales + scale_row * divide_up(weight.cols, 32) + col / 32;
}

ScaleRange scale_range(const WeightBlock& block) {
  ScaleRange range;
  const int64_t step = block.weight.dtype == DType::kF8E4M3 ? 32 : 1;
  const int64_t end = block.row + block.rows;
  const int64_t count = divide_up(block.cols, 32);
  if (block.cols == block.weight.cols) {  // scale rows follow one another without a gap
    const int64_t scale_rows = divide_up(end, step) - block.row / step;
    range.include(scales_at(block.weight, block.row, 0), scale_rows * count);
    return range;
  }
  for (int64_t row = block.row; row < end; row = (row / step + 1) * step)
    range.include(scales_at(block.weight, row, block.col), count);
  return range;
}

// The scales of an FP4 strip are read before its codes: a wait of its own unless they are on the
// way.
void prefetch_scales(const WeightView& weight, int64_t row, int64_t rows) {
  const int64_t end = std::min(row + rows, weight.rows);
  if (row >= end) return;
  const uint8_t* last = scales_at(weight, end - 1, 0) + weight.cols / 32;
  for (const uint8_t* line = scales_at(weight, row, 0); line < last; line += 64)
    __builtin_prefetch(line);
}

// What will be decoded after this piece: the row's next block, or the same row of the next strip.
const void* upcoming(const WeightBlock& block, int64_t row) {
  const WeightView& weight = block.weight;
  if (block.col + kDotBlock < weight.cols) return codes_at(weight, row, block.col + kDotBlock);
  const int64_t next = row + block.rows;
  return next < weight.rows ? codes_at(weight, next, 0) : nullptr;
}

MagnitudeRange decode_pairs(const GemmKernels& kernels, const WeightBlock& block,
                            const ScaleRange& scales, uint16_t* out) {
  MagnitudeRange range;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = block.row + r;
    const DecodeArgs piece{.codes = codes_at(block.weight, row, block.col),
                           .scales = scales_at(block.weight, row, block.col),
                           .count = block.cols,
                           .out = out + r * kDotBlock,
                           .prefetch = upcoming(block, row)};
    switch (block.weight.dtype) {
      case DType::kBF16:
        kernels.decode_bf16(piece, range);
        break;
      case DType::kF8E4M3:
        kernels.decode_fp8(piece);
        break;
      default:
        kernels.decode_fp4(piece);
        break;
    }
  }
  if (block.weight.dtype == DType::kF8E4M3) range = magnitudes(scales, -9, 8);
  if (block.weight.dtype == DType::kI8) range = magnitudes(scales, -1, 2);
  return range;
}

// Any scale: f32(code) · f32(scale), as dot_order.h multiplies it. Slow, and rare.
void decode_extreme(const GemmKernels& kernels, const WeightBlock& block, int64_t row, float* out) {
  float values[kDotBlock];
  const uint8_t* codes = codes_at(block.weight, row, block.col);
  const uint8_t* scales = scales_at(block.weight, row, block.col);
  for (int64_t k = 0; k < block.cols; ++k) {
    const float scale = e8m0_to_f32(scales[k / 32]);
    const float code = block.weight.dtype == DType::kF8E4M3
                           ? e4m3_to_f32(codes[k])
                           : e2m1_to_f32(k % 2 == 0 ? codes[k / 2] & 15 : codes[k / 2] >> 4);
    values[k] = code * scale;
  }
  const bool is_fp4 = block.weight.dtype == DType::kI8;
  (is_fp4 ? kernels.pack_split_fp4 : kernels.pack_split)(values, block.cols, out);
}

void decode_split(const GemmKernels& kernels, const WeightBlock& block, const ScaleRange& scales,
                  const BlockScratch& scratch) {
  const bool is_quantised = block.weight.scales != nullptr;
  const bool is_f32 = block.weight.dtype == DType::kF32;
  const bool by_pairs = !is_f32 && (!is_quantised || scales.is_normal());
  if (by_pairs) decode_pairs(kernels, block, scales, scratch.pairs);
  const int64_t cols = padded_cols(block.weight.dtype, block.cols);
  for (int64_t r = 0; r < block.rows; ++r) {
    float* out = scratch.split + r * kDotBlock;
    if (is_f32) {
      const auto* row =
          reinterpret_cast<const float*>(codes_at(block.weight, block.row + r, block.col));
      kernels.pack_split(row, block.cols, out);
    } else if (by_pairs) {
      kernels.split_from_pairs(scratch.pairs + r * kDotBlock, cols, out);
    } else {
      decode_extreme(kernels, block, block.row + r, out);
    }
  }
}

template <typename T>
TileArgs<T> tile_args(const WeightBlock& block, int64_t x_rows, float* total) {
  return {.x_rows = x_rows,
          .w_stride = kDotBlock,
          .w_rows = block.rows,
          .steps = padded_cols(block.weight.dtype, block.cols) / kDotStep,
          .total = total,
          .total_stride = block.rows,
          .is_first = block.col == 0};
}

void multiply_pairs(const GemmKernels& kernels, const PackedRows& x, int64_t x_rows,
                    const WeightBlock& block, const ScaleRange& scales,
                    const BlockScratch& scratch) {
  TileArgs<uint16_t> tile = tile_args<uint16_t>(block, x_rows, scratch.total);
  tile.x = x.pairs + block.col;
  tile.x_stride = x.stride;
  if (block.weight.dtype == DType::kBF16 && x_rows <= kRowsInPlace && block.cols % kDotStep == 0) {
    tile.w = reinterpret_cast<const uint16_t*>(codes_at(block.weight, block.row, block.col));
    tile.w_stride = block.weight.cols;
    kernels.tile_pairs(tile);
    return;
  }
  const MagnitudeRange range = decode_pairs(kernels, block, scales, scratch.pairs);
  tile.w = scratch.pairs;
  if (kernels.tile_pairs_dot && bf16_dot_is_exact(x.range, range)) {
    kernels.tile_pairs_dot(tile);
  } else {
    kernels.tile_pairs(tile);
  }
}

void multiply_split(const GemmKernels& kernels, const PackedRows& x, int64_t x_rows,
                    const WeightBlock& block, const ScaleRange& scales,
                    const BlockScratch& scratch) {
  decode_split(kernels, block, scales, scratch);
  for (int64_t r = 0; r < x_rows; r += kRowsPerWidening) {
    const int64_t count = std::min(kRowsPerWidening, x_rows - r);
    TileArgs<float> tile =
        tile_args<float>(block, count, scratch.total + r * block.rows * kDotLanes);
    tile.w = scratch.split;
    tile.x = x.split + r * x.stride + block.col;
    tile.x_stride = x.stride;
    if (x.pairs != nullptr) {
      for (int64_t i = 0; i < count; ++i)
        kernels.split_from_pairs(x.pairs + (r + i) * x.stride + block.col, tile.steps * kDotStep,
                                 scratch.x_split + i * kDotBlock);
      tile.x = scratch.x_split;
      tile.x_stride = kDotBlock;
    }
    kernels.tile_split(tile);
  }
}

// False when a value is no bf16.
bool pack_all_pairs(const GemmKernels& kernels, const Context& context, MatrixView<const float> x,
                    bool is_fp4, uint16_t* out, MagnitudeRange* range_of_row, PackedRows& packed) {
  for_row_ranges(context, x.rows, x.cols, [&](int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      MagnitudeRange range;
      uint16_t* row = out + r * packed.stride;
      const bool is_exact = kernels.pack_pairs(x.row(r).data(), x.cols, row, range);
      if (is_fp4) {
        std::fill(row + divide_up(x.cols, kDotStep) * kDotStep, row + packed.stride, uint16_t{0});
        kernels.reorder_fp4(row, packed.stride);
      }
      range_of_row[r] = is_exact ? range : MagnitudeRange{.smallest = 0};
    }
  });
  for (int64_t r = 0; r < x.rows; ++r) {
    packed.range.smallest = std::min(packed.range.smallest, range_of_row[r].smallest);
    packed.range.largest = std::max(packed.range.largest, range_of_row[r].largest);
  }
  return packed.range.smallest != 0;
}

}  // namespace

int64_t weight_row_bytes(const WeightView& weight) {
  if (weight.dtype == DType::kI8) return weight.cols / 2;
  return weight.cols * dtype_bytes(weight.dtype);
}

PackedRows pack_rows(const GemmKernels& kernels, const Context& context, Scratch& scratch,
                     const LinearArgs& args, int64_t first, int64_t count) {
  MatrixView<const float> x = args.x.rows_from(first, count);
  PackedRows packed;
  const bool is_fp4 = args.weight.dtype == DType::kI8;
  packed.stride = padded_cols(args.weight.dtype, x.cols);
  auto* range_of_row = scratch.take<MagnitudeRange>(count);
  auto* pairs = scratch.take<uint16_t>(count * packed.stride);
  if (args.quantise_activations) {
    const MatrixView<float> quantised(scratch.take<float>(count * x.cols), count, x.cols);
    quantise(context, {.x = x, .y = quantised, .quantiser = Quantiser::kFp8Block32});
    x = quantised;
  }
  if (args.weight.dtype != DType::kF32 &&
      pack_all_pairs(kernels, context, x, is_fp4, pairs, range_of_row, packed)) {
    packed.pairs = pairs;
    return packed;
  }
  auto* split = scratch.take<float>(count * packed.stride);
  const auto pack_split = is_fp4 ? kernels.pack_split_fp4 : kernels.pack_split;
  for_row_ranges(context, count, x.cols, [&](int64_t from, int64_t rows) {
    for (int64_t r = from; r < from + rows; ++r)
      pack_split(x.row(r).data(), x.cols, split + r * packed.stride);
  });
  packed.split = split;
  return packed;
}

bool multiply_one_row(const GemmKernels& kernels, const PackedRows& x, const WeightView& weight,
                      int64_t row, int64_t rows, float* total) {
  const bool is_fp4 = weight.dtype == DType::kI8;
  if (x.pairs == nullptr || (!is_fp4 && weight.dtype != DType::kF8E4M3)) return false;
  const auto gemv = is_fp4 ? kernels.gemv_fp4_dot : kernels.gemv_fp8_dot;
  if (gemv == nullptr) return false;
  if (is_fp4) prefetch_scales(weight, row + rows, rows);
  const ScaleRange scales =
      scale_range({.weight = weight, .row = row, .rows = rows, .col = 0, .cols = weight.cols});
  const MagnitudeRange range = is_fp4 ? magnitudes(scales, -1, 2) : magnitudes(scales, -9, 8);
  if (!scales.is_normal() || !bf16_dot_is_exact(x.range, range)) return false;
  if (is_fp4 && !fp4_gemv_is_exact(x.range, scales.largest - scales.smallest, weight.cols))
    return false;
  for (int64_t r = 0; r < rows; r += kGemvRows)
    // FP8 rows share their scales: kGemvRows of them from a multiple of it on lie in 32.
    gemv({.x = x.pairs,
          .codes = codes_at(weight, row + r, 0),
          .codes_stride = weight_row_bytes(weight),
          .scales = scales_at(weight, row + r, 0),
          .scales_stride = is_fp4 ? weight.cols / 32 : 0,
          .rows = std::min(kGemvRows, rows - r),
          .cols = weight.cols,
          .total = total + r * kDotLanes});
  return true;
}

void multiply_block(const GemmKernels& kernels, const PackedRows& x, int64_t x_rows,
                    const WeightBlock& block, const BlockScratch& scratch) {
  const bool is_quantised = block.weight.scales != nullptr;
  const ScaleRange scales = is_quantised ? scale_range(block) : ScaleRange{};
  if (x.pairs != nullptr && (!is_quantised || scales.is_normal())) {
    multiply_pairs(kernels, x, x_rows, block, scales, scratch);
  } else {
    multiply_split(kernels, x, x_rows, block, scales, scratch);
  }
}

}  // namespace fathom::kernels::cpu
