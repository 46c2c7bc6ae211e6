// Packing, decoding and tiles of `linear` in plain C++: the compiler may use what every CPU has.
#include "kernels/cpu/gemm_portable.h"

#include <bit>
#include <cstring>

#include "kernels/cpu/gemm_tile.h"
#include "tensor/codec.h"

namespace fathom::kernels::cpu {
namespace portable {

struct Lanes {
  float value[kDotLanes];

  static Lanes zero() { return {}; }
  static Lanes load(const float* p) {
    Lanes lanes;
    std::memcpy(lanes.value, p, sizeof lanes.value);
    return lanes;
  }
  static Lanes load_pairs_odd(const uint16_t* p) {
    Lanes lanes;
    for (int i = 0; i < kDotLanes; ++i)
      lanes.value[i] = std::bit_cast<float>(uint32_t{p[2 * i + 1]} << 16);
    return lanes;
  }
  static Lanes load_pairs_even(const uint16_t* p) {
    Lanes lanes;
    for (int i = 0; i < kDotLanes; ++i)
      lanes.value[i] = std::bit_cast<float>(uint32_t{p[2 * i]} << 16);
    return lanes;
  }
  void store(float* p) const { std::memcpy(p, value, sizeof value); }
  friend Lanes operator+(const Lanes& a, const Lanes& b) {
    Lanes sum;
    for (int i = 0; i < kDotLanes; ++i) sum.value[i] = a.value[i] + b.value[i];
    return sum;
  }
  friend Lanes operator*(const Lanes& a, const Lanes& b) {
    Lanes product;
    for (int i = 0; i < kDotLanes; ++i) product.value[i] = a.value[i] * b.value[i];
    return product;
  }
};

namespace {

// The bf16 bits of every code at scale 1. E2M1 codes are 4 bits wide.
struct CodeTables {
  uint16_t fp8[256];
  uint16_t fp4[16];

  CodeTables() {
    for (int code = 0; code < 256; ++code)
      fp8[code] = f32_to_bf16(e4m3_to_f32(static_cast<uint8_t>(code)));
    for (int code = 0; code < 16; ++code)
      fp4[code] = f32_to_bf16(e2m1_to_f32(static_cast<uint8_t>(code)));
  }
};
const CodeTables kTables;

// Multiplies bf16 bits by a power of two, given as its exponent in bf16 position; zeros stay zeros.
uint16_t scaled(uint16_t bits, int exponent) {
  return (bits & 0x7fff) == 0 ? bits : static_cast<uint16_t>(bits + exponent);
}

int exponent_bits(uint8_t scale) {
  return (scale - 127) * 128;
}

void include(MagnitudeRange& range, uint16_t bits) {
  const uint16_t magnitude = bits & 0x7fff;
  if (magnitude == 0) return;
  if (magnitude < range.smallest) range.smallest = magnitude;
  if (magnitude > range.largest) range.largest = magnitude;
}

int64_t padded(int64_t count) {
  return (count + kDotStep - 1) / kDotStep * kDotStep;
}

void tile_pairs(const TileArgs<uint16_t>& args) {
  multiply_strip<Lanes, PairsLoad<Lanes>, uint16_t, 2, 1>(args);
}

void tile_split(const TileArgs<float>& args) {
  multiply_strip<Lanes, SplitLoad<Lanes>, float, 2, 1>(args);
}

}  // namespace

bool pack_pairs(const float* x, int64_t count, uint16_t* out, MagnitudeRange& range) {
  uint32_t lost = 0;
  for (int64_t k = 0; k < count; ++k) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[k]);
    lost |= bits & 0xffff;
    out[k] = static_cast<uint16_t>(bits >> 16);
    include(range, out[k]);
  }
  for (int64_t k = count; k < padded(count); ++k) out[k] = 0;
  return lost == 0;
}

void pack_split(const float* x, int64_t count, float* out) {
  for (int64_t s = 0; s < count; s += kDotStep) {
    for (int64_t i = 0; i < kDotLanes; ++i) {
      const int64_t k = s + 2 * i;
      out[s + i] = k + 1 < count ? x[k + 1] : 0;
      out[s + kDotLanes + i] = k < count ? x[k] : 0;
    }
  }
}

void pack_split_fp4(const float* x, int64_t count, float* out) {
  for (int64_t group = 0; group < count; group += kFp4Group) {
    float ordered[kFp4Group] = {};
    for (int64_t i = 0; i < kFp4Group && group + i < count; ++i)
      ordered[fp4_position(i)] = x[group + i];
    pack_split(ordered, kFp4Group, out + group);
  }
}

void reorder_fp4(uint16_t* pairs, int64_t count) {
  for (int64_t group = 0; group < count; group += kFp4Group) {
    uint16_t natural[kFp4Group];
    std::memcpy(natural, pairs + group, sizeof natural);
    for (int64_t i = 0; i < kFp4Group; ++i) pairs[group + fp4_position(i)] = natural[i];
  }
}

void split_from_pairs(const uint16_t* pairs, int64_t count, float* out) {
  for (int64_t s = 0; s < count; s += kDotStep) {
    Lanes::load_pairs_odd(pairs + s).store(out + s);
    Lanes::load_pairs_even(pairs + s).store(out + s + kDotLanes);
  }
}

void decode_bf16(const DecodeArgs& args, MagnitudeRange& range) {
  const auto* codes = static_cast<const uint16_t*>(args.codes);
  for (int64_t k = 0; k < args.count; ++k) {
    args.out[k] = codes[k];
    include(range, codes[k]);
  }
  for (int64_t k = args.count; k < padded(args.count); ++k) args.out[k] = 0;
}

void decode_fp8(const DecodeArgs& args) {
  const auto* codes = static_cast<const uint8_t*>(args.codes);
  for (int64_t k = 0; k < args.count; ++k)
    args.out[k] = scaled(kTables.fp8[codes[k]], exponent_bits(args.scales[k / 32]));
  for (int64_t k = args.count; k < padded(args.count); ++k) args.out[k] = 0;
}

void decode_fp4(const DecodeArgs& args) {
  const auto* codes = static_cast<const uint8_t*>(args.codes);
  for (int64_t group = 0; group < args.count; group += kFp4Group) {
    uint16_t* out = args.out + group;
    for (int64_t i = 0; i < kFp4Group; ++i) {
      const int64_t k = group + i;
      uint16_t bits = 0;
      if (k < args.count) {
        const int code = k % 2 == 0 ? codes[k / 2] & 15 : codes[k / 2] >> 4;
        bits = scaled(kTables.fp4[code], exponent_bits(args.scales[k / 32]));
      }
      out[fp4_position(i)] = bits;
    }
  }
}

void finish(const FinishArgs& args) {
  for (int64_t n = 0; n < args.count; ++n) {
    Lanes lanes = Lanes::load(args.total + n * kDotLanes);
    for (int half = 8; half >= 1; half /= 2)
      for (int i = 0; i < half; ++i) lanes.value[i] += lanes.value[i + half];
    const float value = args.bias ? lanes.value[0] + args.bias[n] : lanes.value[0];
    args.y[n] = args.round_bf16 ? round_to_bf16(value) : value;
  }
}

}  // namespace portable

const GemmKernels& gemm_kernels_portable() {
  static constexpr GemmKernels kKernels = {
      .pack_pairs = portable::pack_pairs,
      .pack_split = portable::pack_split,
      .pack_split_fp4 = portable::pack_split_fp4,
      .reorder_fp4 = portable::reorder_fp4,
      .split_from_pairs = portable::split_from_pairs,
      .decode_bf16 = portable::decode_bf16,
      .decode_fp8 = portable::decode_fp8,
      .decode_fp4 = portable::decode_fp4,
      .tile_pairs = portable::tile_pairs,
      .tile_split = portable::tile_split,
      .tile_pairs_dot = nullptr,
      .gemv_fp8_dot = nullptr,
      .gemv_fp4_dot = nullptr,
      .finish = portable::finish,
  };
  return kKernels;
}

}  // namespace fathom::kernels::cpu
