#include "verify/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace fathom::verify {
namespace {

// bf16 results of one op: 99.99 % equal, because a sum close to a rounding border may fall on
// either side of it. Over all ops of a case that holds as it stands; of one op's few thousand
// numbers, where one is expected to differ, four are let through (Poisson with mean 1 exceeds 4 in
// 0.4 % of cases).
constexpr double kBf16UnequalShareMax = 1e-4;
constexpr double kBf16UnequalCountMin = 4;
constexpr int64_t kBf16UlpMax = 2;
constexpr double kFullRelL2Max = 5e-7;
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

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return verdict == Verdict::kPass ? "PASS" : verdict == Verdict::kFail ? "FAIL" : "printed";
}

std::string_view limit_text(Limit limit) {
  switch (limit) {
    case Limit::kEqual:
      return "all equal";
    case Limit::kStoredBf16:
      return ">= 99.99 % equal, <= 2 ulp";
    case Limit::kAllStoredBf16:
      return ">= 99.99 % equal";
    case Limit::kFull:
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
  ulp_max_ = std::max(ulp_max_, other.ulp_max_);
  difference_squares_ += other.difference_squares_;
  want_squares_ += other.want_squares_;
  if (!other.worst_.empty() && other.abs_max_ >= abs_max_) worst_ = other.worst_;
  abs_max_ = std::max(abs_max_, other.abs_max_);
}

void Tally::add(std::span<const float> got, std::span<const float> want, int64_t cols, DType dtype,
                std::string_view where, int64_t first_row) {
  if (got.size() != want.size())
    return fail(fmt::format("{}: {} numbers, the golden has {}", where, got.size(), want.size()));
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t row = first_row + static_cast<int64_t>(i) / std::max<int64_t>(1, cols);
    const float g = got[i];
    const float w = want[i];
    ++count_;
    if (std::isnan(g) || std::isnan(w)) {
      fail(fmt::format("{} row {} is {}, the golden has {}", where, row, g, w));
      continue;
    }
    if (std::isfinite(w)) want_squares_ += static_cast<double>(w) * w;
    if (g == w) {
      ++equal_;
      continue;
    }
    if (std::isinf(g) || std::isinf(w)) {
      fail(fmt::format("{} row {} is {}, the golden has {}", where, row, g, w));
      continue;
    }
    const double difference = std::abs(static_cast<double>(g) - w);
    difference_squares_ += difference * difference;
    ulp_max_ = std::max(ulp_max_, ulps(g, w, dtype == DType::kBF16));
    note_worst(difference, where, row);
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
  if (difference_squares_ == 0) return 0;
  return want_squares_ == 0 ? HUGE_VAL : std::sqrt(difference_squares_ / want_squares_);
}

double Tally::equal_share() const {
  return count_ == 0 ? 0 : static_cast<double>(equal_) / static_cast<double>(count_);
}

Verdict Tally::verdict() const {
  if (!failure_.empty()) return Verdict::kFail;
  const auto pass_if = [](bool is_good) { return is_good ? Verdict::kPass : Verdict::kFail; };
  const auto unequal = static_cast<double>(count_ - equal_);
  switch (limit_) {
    case Limit::kPrinted:
      return Verdict::kPrinted;
    case Limit::kEqual:
      return pass_if(unequal == 0);
    case Limit::kStoredBf16: {
      const double allowed =
          std::max(kBf16UnequalCountMin, kBf16UnequalShareMax * static_cast<double>(count_));
      return pass_if(unequal <= allowed && ulp_max_ <= kBf16UlpMax);
    }
    case Limit::kAllStoredBf16:
      return pass_if(unequal <= kBf16UnequalShareMax * static_cast<double>(count_));
    case Limit::kFull:
      return pass_if(rel_l2() <= kFullRelL2Max);
    case Limit::kSmoothTap:
      return pass_if(rel_l2() <= kSmoothTapRelL2Max);
    case Limit::kSmoothLogits:
      return pass_if(abs_max_ <= kSmoothLogitsAbsMax);
    case Limit::kVisionTower:
      return pass_if(rel_l2() <= kVisionTowerRelL2Max);
  }
  return Verdict::kFail;
}

}  // namespace fathom::verify
