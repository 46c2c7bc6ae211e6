#include "kernels/rope.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/lanes/rope.h"
#include "kernels/dispatch.h"

namespace fathom::kernels {
namespace {

// The pair index where a wavelength of `beta` turns in the original context begins (§3.3).
double yarn_corner(int64_t rotary_dims, double theta, const Yarn& yarn, double beta) {
  const double turns = static_cast<double>(yarn.original_positions) / (beta * 2 * M_PI);
  return static_cast<double>(rotary_dims) * std::log(turns) / (2 * std::log(theta));
}

void blend_yarn(std::vector<float>& frequencies, int64_t rotary_dims, double theta,
                const Yarn& yarn) {
  const double low =
      std::max(std::floor(yarn_corner(rotary_dims, theta, yarn, yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(yarn_corner(rotary_dims, theta, yarn, yarn.beta_slow)),
                               static_cast<double>(rotary_dims - 1));
  const float span = static_cast<float>(std::max(high - low, 1e-3));
  const float factor = static_cast<float>(yarn.factor);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / span;
    const float t = std::clamp(ramp, 0.0f, 1.0f);
    const float f = frequencies[i];
    frequencies[i] = f / factor * t + f * (1.0f - t);
  }
}

// cos twice per pair, and -sin, +sin, so that a row turns without taking pairs apart.
void spread_pairs(std::span<const float> table, bool inverse, float* cosine, float* sine) {
  const size_t half = table.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const float s = inverse ? -table[half + i] : table[half + i];
    cosine[2 * i] = cosine[2 * i + 1] = table[i];
    sine[2 * i] = -s;
    sine[2 * i + 1] = s;
  }
}

}  // namespace

std::vector<float> rope_frequencies(int64_t rotary_dims, double theta,
                                    const std::optional<Yarn>& yarn) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < rotary_dims; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(rotary_dims);
    // pow in double is far more exact than f32 needs, so this is the correctly rounded f32 power.
    const float power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies.push_back(1.0f / power);
  }
  if (yarn) blend_yarn(frequencies, rotary_dims, theta, *yarn);
  return frequencies;
}

void rope_table(std::span<const int64_t> positions, std::span<const float> frequencies,
                MatrixView<float> table) {
  const int64_t half = static_cast<int64_t>(frequencies.size());
  FATHOM_CHECK(table.rows == static_cast<int64_t>(positions.size()) && table.cols == 2 * half,
               "table [{}, {}] for {} positions and {} frequencies", table.rows, table.cols,
               positions.size(), half);
  for (int64_t t = 0; t < table.rows; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(positions[t]) * frequencies[i];
      table.row(t)[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      table.row(t)[half + i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

void rope(const Context& context, const RopeArgs& args) {
  const int64_t rotary = args.table.cols;
  FATHOM_CHECK(args.head_dim > 0 && args.x.cols % args.head_dim == 0 &&
                   args.x.rows == args.table.rows && rotary % 2 == 0 && rotary <= args.head_dim &&
                   rotary <= kRotaryMax,
               "x [{}, {}], head_dim {}, table [{}, {}]", args.x.rows, args.x.cols, args.head_dim,
               args.table.rows, rotary);
  if (context.isa == Isa::kRef) return ref::rope(args);
  const bool is_adjacent = args.pairs == RopePairs::kAdjacent;
  const auto adjacent_row = FATHOM_PICK(context.isa, rope_adjacent_row);
  const auto half_split_row = FATHOM_PICK(context.isa, rope_half_split_row);
  for_row_ranges(context, args.x.rows, args.x.cols, [&](int64_t first, int64_t count) {
    std::array<float, kRotaryMax> cosine;
    std::array<float, kRotaryMax> sine;
    for (int64_t t = first; t < first + count; ++t) {
      const auto table = args.table.row(t);
      if (is_adjacent) {
        spread_pairs(table, args.inverse, cosine.data(), sine.data());
      } else {
        for (int64_t i = 0; i < rotary / 2; ++i) {
          cosine[i] = table[i];
          sine[i] = args.inverse ? -table[rotary / 2 + i] : table[rotary / 2 + i];
        }
      }
      (is_adjacent ? adjacent_row : half_split_row)(
          args.x.row(t).data(), args.x.cols / args.head_dim, args.head_dim, cosine.data(),
          sine.data(), rotary, args.round_bf16);
    }
  });
}

}  // namespace fathom::kernels
