// SHA-256 (FIPS 180-4). For comparing keys and naming contents; speed does not matter here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest sha256(std::string_view bytes);
std::string hex(const Sha256Digest& digest);  // 64 lower-case digits
std::string sha256_hex(std::string_view bytes);

}  // namespace fathom
