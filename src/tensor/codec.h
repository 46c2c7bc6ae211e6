// Scalar codecs of the small float types: bf16, E4M3, E2M1 and E8M0. Spec §3.8, §9.2.
// One value at a time, for tables, checks and ref kernels; fast code has its own vector forms.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fathom {

inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Nearest, ties to even; overflow goes to infinity; NaN stays a quiet NaN.
inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float round_to_bf16(float value) {
  return bf16_to_f32(f32_to_bf16(value));
}

// The "fn" variant: no infinity, largest 448, subnormal step 2^-9, codes 0x7f and 0xff are NaN.
inline float e4m3_to_f32(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80) ? -magnitude : magnitude;
}

// Nearest, ties to the even code, saturating at 448; the sign of zero is kept, NaN gives 0x7f.
inline uint8_t f32_to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return 0x7f;
  const float magnitude = std::fabs(value);
  if (magnitude >= 448.0f) return sign | 0x7e;
  if (magnitude < 0x1p-6f) {  // subnormal: a multiple of 2^-9; eight of them are the first normal
    return sign | static_cast<uint8_t>(std::nearbyint(magnitude * 512.0f));
  }
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = bits + 0x7ffff + ((bits >> 20) & 1);  // keeps 3 mantissa bits
  return sign | static_cast<uint8_t>((rounded >> 20) - (120u << 3));
}

inline constexpr float kE2m1Values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                          -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Low four bits of `code`: index into {0, .5, 1, 1.5, 2, 3, 4, 6}, bit 3 is the sign.
inline float e2m1_to_f32(uint8_t code) {
  return kE2m1Values[code & 15];
}

// Nearest, ties to the even code, saturating at 6; the sign of zero is kept. NaN is not expected.
inline uint8_t f32_to_e2m1(float value) {
  // A value goes to code i + 1 above the middle of grid[i] and grid[i + 1]; on it, to the even one.
  constexpr float kMiddles[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float magnitude = std::fabs(value);
  uint8_t code = 0;
  while (code < 7 && (magnitude > kMiddles[code] || (magnitude == kMiddles[code] && code % 2 == 1)))
    ++code;
  return code | (std::signbit(value) ? 8 : 0);
}

// 2^(byte - 127); byte 0 is the subnormal 2^-127, 255 is NaN.
inline float e8m0_to_f32(uint8_t byte) {
  if (byte == 255) return std::numeric_limits<float>::quiet_NaN();
  if (byte == 0) return 0x1p-127f;
  return std::bit_cast<float>(static_cast<uint32_t>(byte) << 23);
}

// The byte of a power of two in [2^-127, 2^127].
inline uint8_t f32_to_e8m0(float power_of_two) {
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(power_of_two) >> 23);
}

// The smallest power of two >= value, for a positive normal value.
inline float power_of_two_ceil(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(((bits >> 23) + ((bits & 0x7fffff) != 0 ? 1u : 0u)) << 23);
}

}  // namespace fathom
