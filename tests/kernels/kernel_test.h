// What the kernel tests share: random operands, contexts for every ISA, and the grid check.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/context.h"
#include "tensor/codec.h"
#include "tensor/view.h"

namespace fathom::kernels {

// A matrix that owns its values; rows are `pad` values further apart than they are long, and the
// gaps hold NaN, so that a kernel that reads or writes them shows.
template <typename T>
struct Matrix {
  std::vector<T> values;
  int64_t rows = 0, cols = 0, stride = 0;

  Matrix(int64_t rows_in, int64_t cols_in, int64_t pad = 0)
      : values(static_cast<size_t>(rows_in * (cols_in + pad)), fill()),
        rows(rows_in),
        cols(cols_in),
        stride(cols_in + pad) {}
  MatrixView<T> view() { return {values.data(), rows, cols, stride}; }
  operator MatrixView<T>() { return view(); }        // NOLINT
  operator MatrixView<const T>() { return view(); }  // NOLINT
  T* row(int64_t r) { return values.data() + r * stride; }

  static T fill() {
    if constexpr (std::is_floating_point_v<T>) return std::nanf("");
    return T{};
  }
};

enum class Values { kBf16, kF32 };

// Normal values times `scale`; the same for the same seed.
inline Matrix<float> random_matrix(int64_t rows, int64_t cols, uint32_t seed,
                                   Values values = Values::kBf16, float scale = 1,
                                   int64_t pad = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Matrix<float> m(rows, cols, pad);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const float value = normal(random) * scale;
      m.row(r)[c] = values == Values::kBf16 ? round_to_bf16(value) : value;
    }
  }
  return m;
}

inline std::vector<float> random_vector(int64_t count, uint32_t seed, Values values = Values::kBf16,
                                        float scale = 1) {
  return random_matrix(1, count, seed, values, scale).values;
}

template <typename T>
void append(std::vector<float>& out, MatrixView<const T> m) {
  for (int64_t r = 0; r < m.rows; ++r)
    for (T value : m.row(r)) out.push_back(static_cast<float>(value));
}

// How far a cpu kernel may be from ref: |a - b| <= relative · |b| + absolute; and `flips` of the
// values, in parts per million, may be one bf16 step further where the op rounds to bf16.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  int64_t flips_ppm = 0;
};

inline void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                         Tolerance tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  int64_t flips = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // infinities, too
    const double difference = std::fabs(static_cast<double>(got[i]) - want[i]);
    if (difference <= tolerance.relative * std::fabs(want[i]) + tolerance.absolute) continue;
    const double step = std::ldexp(1.0, std::ilogb(want[i] == 0 ? 1e-30f : want[i]) - 7);
    ASSERT_LE(difference, step * (tolerance.flips_ppm > 0 ? 1 : 0))
        << what << ", value " << i << ": " << got[i] << " for " << want[i];
    ++flips;
  }
  // At least two, so that short outputs do not fail on their first flip.
  EXPECT_LE(flips,
            std::max<int64_t>(tolerance.flips_ppm > 0 ? 2 : 0,
                              static_cast<int64_t>(got.size()) * tolerance.flips_ppm / 1'000'000))
      << what;
}

inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want,
                             const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << what << ", value " << i << ": " << got[i] << " for " << want[i];
}

// Runs an op: makes its outputs, calls it and returns all of them in one vector.
using RunOp = std::function<std::vector<float>(const Context&)>;

inline std::vector<float> run_on(const RunOp& run, Isa isa, int threads) {
  ThreadPool pool(threads);
  Workspace workspace;
  return run({pool, workspace, isa});
}

// The grid of one op and shape: every ISA of this machine against ref, and all of them, with 1, 2
// and 3 threads, against one another bit for bit.
inline void expect_grid(const std::string& what, Tolerance tolerance, const RunOp& run) {
  const std::vector<float> reference = run_on(run, Isa::kRef, 1);
  const std::vector<float> portable = run_on(run, Isa::kPortable, 1);
  expect_close(portable, reference, tolerance, what + " portable");
  for (Isa isa : available_isas()) {
    if (isa == Isa::kRef) continue;
    for (int threads : {1, 2, 3}) {
      expect_same_bits(
          run_on(run, isa, threads), portable,
          what + " " + std::string(isa_name(isa)) + ", " + std::to_string(threads) + " threads");
    }
  }
}

}  // namespace fathom::kernels
