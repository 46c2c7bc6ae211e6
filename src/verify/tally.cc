#include "verify/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace fathom::verify {
namespace {

// bf16 results of one op: 99.99 % equal and none beyond 2 ulp, because a sum close to a rounding
// border may fall on either side of it. Of one op's few thousand numbers, where one is expected to
// differ, four are let through (Poisson with mean 1 exceeds 4 in 0.4 % of cases).
constexpr double kBf16UnequalShareMax = 1e-4;
constexpr double kBf16UnequalCountMin = 4;
constexpr int64_t kBf16UlpMax = 2;
constexpr double kFullRelL2Max = 5e-7;

// The rest of this block is the allowance for border cases: what may still be chance where a limit
// is missed. One random model in ten has such a quantity; the official goldens have none.
//
// The NumPy oracle's own f32 attention differs from exact arithmetic in up to 1.2e-4 of its
// results: twice that.
constexpr double kBorderUnequalShareMax = 2.4e-4;
// A sum that cancels is smaller than the errors of its terms allow to tell: K f32 products of a row
// of this size err by about 2^-24·sqrt(K) of it, 2^-18 for K = 5120, and attention by the size of
// its scores. Below 2^-17 of the row's root mean square a difference is unequal, but its ulps say
// nothing: a bf16 number that small has fewer bits that mean something than it stores.
constexpr double kNoiseOfRow = 0x1p-17;
// Behind two more roundings a border case in the middle moves every result of its row a little.
constexpr double kChainUnequalShareMax = 1e-2;
constexpr double kChainRelL2Max = 1e-3;
// A border case in front of a code flips the code in one of 16 or 64 cases; behind a product the
// whole row moves. Random models show such a row in 3e-5 of all. An FP8 code's step is an eighth of
// the number, so the row moves by less than that, and a mistake's by more.
constexpr double kMovedRowsShareMax = 1e-4;
constexpr double kMovedRowsCountMin = 1;
constexpr double kMovedRowRelL2Max = 0.125;
constexpr double kMovedRowUnequalShareMin = 0.02;
// gate = sigmoid(±sqrt(max(|dot|, 1e-6))): near zero the root makes an error of dot 500 times
// larger.
constexpr double kGateRelL2Max = 5e-6;

// Without roundings each op is a few f32 roundings of its longest sum away from the golden's f32.
constexpr double kSmoothTapRelL2Max = 1e-5;
constexpr double kSmoothLogitsAbsMax = 1e-4;
// Measured with the official code's own CPU attention: 0.4 to 0.5 %.
constexpr double kVisionTowerRelL2Max = 1e-2;

// Distance in representable values of bf16 or f32; the zeros are one value.
int64_t ulps(float a, float b, bool is_bf16) {
  const auto order = [&](float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    auto rank = static_cast<int64_t>(bits & 0x7fffffffU);
    if (is_bf16) rank >>= 16;
    return (bits & 0x80000000U) != 0 ? -rank : rank;
  };
  return std::abs(order(a) - order(b));
}

double root_mean_square(std::span<const float> row) {
  double squares = 0;
  for (const float value : row)
    if (std::isfinite(value)) squares += static_cast<double>(value) * value;
  return row.empty() ? 0 : std::sqrt(squares / static_cast<double>(row.size()));
}

// What chance explains: the mean of a Poisson count and four standard deviations.
double chance_max(double share, int64_t count, double least) {
  const double mean = share * static_cast<double>(count);
  return std::max(least, mean + 4 * std::sqrt(mean));
}

double relative(double difference_squares, double want_squares) {
  if (difference_squares == 0) return 0;
  return want_squares == 0 ? HUGE_VAL : std::sqrt(difference_squares / want_squares);
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kExplained:
      return "PASS (border)";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kPrinted:
      break;
  }
  return "printed";
}

std::string_view limit_text(Limit limit) {
  switch (limit) {
    case Limit::kEqual:
      return "all equal";
    case Limit::kStoredBf16:
    case Limit::kQuantisedBf16:
    case Limit::kChain:
      return ">= 99.99 % equal, <= 2 ulp";
    case Limit::kAllStoredBf16:
      return ">= 99.99 % equal";
    case Limit::kFull:
    case Limit::kGate:
      return "rel L2 <= 5e-7";
    case Limit::kSmoothTap:
      return "rel L2 <= 1e-5";
    case Limit::kSmoothLogits:
      return "every row <= 1e-4";
    case Limit::kVisionTower:
      return "rel L2 <= 1e-2";
    case Limit::kPrinted:
      break;
  }
  return "none";
}

void Tally::note_worst(double difference, std::string_view where, int64_t row) {
  if (difference <= abs_max_ && !worst_.empty()) return;
  abs_max_ = std::max(abs_max_, difference);
  worst_ = fmt::format("{} row {}", where, row);
}

void Tally::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

void Tally::add_counts(const Tally& other) {
  count_ += other.count_;
  equal_ += other.equal_;
  moved_count_ += other.moved_count_;
  moved_unequal_ += other.moved_unequal_;
  ulp_max_ = std::max(ulp_max_, other.ulp_max_);
  difference_squares_ += other.difference_squares_;
  want_squares_ += other.want_squares_;
  if (!other.worst_.empty() && other.abs_max_ >= abs_max_) worst_ = other.worst_;
  abs_max_ = std::max(abs_max_, other.abs_max_);
}

bool Tally::compare(float got, float want, bool is_bf16, double noise, Row* row) {
  if (std::isnan(got) || std::isnan(want)) return false;
  if (std::isfinite(want)) row->want_squares += static_cast<double>(want) * want;
  if (got == want) return true;
  if (std::isinf(got) || std::isinf(want)) return false;
  const double difference = std::abs(static_cast<double>(got) - want);
  ++row->unequal;
  row->difference_squares += difference * difference;
  const int64_t distance = ulps(got, want, is_bf16);
  row->ulp_max = std::max(row->ulp_max, distance);
  if (!is_bf16 || difference > noise) row->loud_ulp_max = std::max(row->loud_ulp_max, distance);
  return true;
}

void Tally::note_row(const Row& row, int64_t cols) {
  ++rows_;
  count_ += cols;
  equal_ += cols - row.unequal;
  difference_squares_ += row.difference_squares;
  want_squares_ += row.want_squares;
  ulp_max_ = std::max(ulp_max_, row.ulp_max);
  const bool is_moved = row.loud_ulp_max > kBf16UlpMax ||
                        static_cast<double>(row.unequal) >
                            chance_max(kMovedRowUnequalShareMin, cols, kBf16UnequalCountMin);
  if (limit_ != Limit::kQuantisedBf16 || !is_moved) {
    loud_ulp_max_ = std::max(loud_ulp_max_, row.loud_ulp_max);
    return;
  }
  ++moved_rows_;
  moved_count_ += cols;
  moved_unequal_ += row.unequal;
  moved_rel_l2_max_ =
      std::max(moved_rel_l2_max_, relative(row.difference_squares, row.want_squares));
}

void Tally::add(std::span<const float> got, std::span<const float> want, int64_t cols, DType dtype,
                std::string_view where, int64_t first_row) {
  if (got.size() != want.size())
    return fail(fmt::format("{}: {} numbers, the golden has {}", where, got.size(), want.size()));
  const bool is_bf16 = dtype == DType::kBF16;
  const auto width = static_cast<size_t>(std::max<int64_t>(1, cols));
  for (size_t begin = 0; begin < want.size(); begin += width) {
    const std::span<const float> expected =
        want.subspan(begin, std::min(width, want.size() - begin));
    const int64_t place = first_row + static_cast<int64_t>(begin / width);
    const double noise = kNoiseOfRow * root_mean_square(expected);
    Row row;
    for (size_t i = 0; i < expected.size(); ++i) {
      const float g = got[begin + i];
      if (!compare(g, expected[i], is_bf16, noise, &row)) {
        ++row.unequal;
        fail(fmt::format("{} row {} is {}, the golden has {}", where, place, g, expected[i]));
      } else if (g != expected[i]) {
        note_worst(std::abs(static_cast<double>(g) - expected[i]), where, place);
      }
    }
    note_row(row, static_cast<int64_t>(expected.size()));
  }
}

void Tally::add(std::span<const int32_t> got, std::span<const int32_t> want, int64_t cols,
                std::string_view where, int64_t first_row) {
  if (got.size() != want.size())
    return fail(fmt::format("{}: {} numbers, the golden has {}", where, got.size(), want.size()));
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t row = first_row + static_cast<int64_t>(i) / std::max<int64_t>(1, cols);
    ++count_;
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    equal_ += difference == 0 ? 1 : 0;
    difference_squares_ += difference * difference;
    want_squares_ += static_cast<double>(want[i]) * want[i];
    if (difference > 0) note_worst(difference, where, row);
  }
}

double Tally::rel_l2() const {
  return relative(difference_squares_, want_squares_);
}

double Tally::equal_share() const {
  return count_ == 0 ? 0 : static_cast<double>(equal_) / static_cast<double>(count_);
}

Verdict Tally::verdict() const {
  if (!failure_.empty()) return Verdict::kFail;
  if (limit_ == Limit::kPrinted) return Verdict::kPrinted;
  if (meets_limit()) return Verdict::kPass;
  return is_explained() ? Verdict::kExplained : Verdict::kFail;
}

bool Tally::meets_limit() const {
  const auto unequal = static_cast<double>(count_ - equal_);
  const double some = kBf16UnequalShareMax * static_cast<double>(count_);
  switch (limit_) {
    case Limit::kPrinted:
      return true;
    case Limit::kEqual:
      return unequal == 0;
    case Limit::kStoredBf16:
    case Limit::kQuantisedBf16:
    case Limit::kChain:
      return unequal <= std::max(kBf16UnequalCountMin, some) && ulp_max_ <= kBf16UlpMax;
    case Limit::kAllStoredBf16:
      return unequal <= some;
    case Limit::kFull:
    case Limit::kGate:
      return rel_l2() <= kFullRelL2Max;
    case Limit::kSmoothTap:
      return rel_l2() <= kSmoothTapRelL2Max;
    case Limit::kSmoothLogits:
      return abs_max_ <= kSmoothLogitsAbsMax;
    case Limit::kVisionTower:
      return rel_l2() <= kVisionTowerRelL2Max;
  }
  return false;
}

bool Tally::is_explained() const {
  const auto at_borders = [&](double share) {
    return static_cast<double>(count_ - equal_ - moved_unequal_) <=
           chance_max(share, count_ - moved_count_, kBf16UnequalCountMin);
  };
  switch (limit_) {
    case Limit::kStoredBf16:
    case Limit::kQuantisedBf16:
      return at_borders(kBorderUnequalShareMax) && loud_ulp_max_ <= kBf16UlpMax &&
             moved_rel_l2_max_ <= kMovedRowRelL2Max &&
             static_cast<double>(moved_rows_) <=
                 chance_max(kMovedRowsShareMax, rows_, kMovedRowsCountMin);
    case Limit::kAllStoredBf16:
      return at_borders(kBf16UnequalShareMax);
    case Limit::kChain:
      return at_borders(kChainUnequalShareMax) && rel_l2() <= kChainRelL2Max;
    case Limit::kGate:
      return rel_l2() <= kGateRelL2Max;
    default:
      return false;
  }
}

}  // namespace fathom::verify
