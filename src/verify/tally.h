// Compares what Fathom computed with what a golden says, number by number, and says whether that is
// within a limit. A NaN, a missing row or a wrong shape fails whatever the limit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace fathom::verify {

// kExplained: beyond the limit, but no further than chance at rounding borders goes (tally.cc).
enum class Verdict { kPass, kExplained, kFail, kPrinted };
std::string_view verdict_name(Verdict verdict);  // "PASS", "PASS (border)", "FAIL", "printed"

enum class Limit {
  kPrinted,     // shown, not judged: the arithmetics differ, or errors of earlier steps are in it
  kEqual,       // integers, codes, patches
  kStoredBf16,  // one op on the golden's own inputs, result stored as bf16
  kQuantisedBf16,  // the same with a quantiser inside or at the end of the op
  kAllStoredBf16,  // such results of a whole case together
  kChain,          // several ops with roundings between them
  kFull,           // one op, result kept in f32
  kGate,           // the same, behind a root of a sum near zero
  kSmoothTap,      // one op without any rounding point
  kSmoothLogits,   // end to end without roundings and quantisers
  kVisionTower,    // ViT output: the golden's own attention rounds its probabilities in tiles
};
std::string_view limit_text(Limit limit);

// Differences of one quantity, pooled over the tensors that were added.
class Tally {
 public:
  Tally(std::string name, Limit limit) : name_(std::move(name)), limit_(limit) {}

  // Rows of `cols` numbers; `where` names the tensor and `first_row` the place of got[0] in it.
  void add(std::span<const float> got, std::span<const float> want, int64_t cols, DType dtype,
           std::string_view where, int64_t first_row = 0);
  void add(std::span<const int32_t> got, std::span<const int32_t> want, int64_t cols,
           std::string_view where, int64_t first_row = 0);
  // The numbers of another quantity, for a total.
  void add_counts(const Tally& other);
  // Something that could not be compared: always a FAIL.
  void fail(const std::string& why);

  const std::string& name() const { return name_; }
  Limit limit() const { return limit_; }
  int64_t count() const { return count_; }
  int64_t equal_count() const { return equal_; }
  int64_t ulp_max() const { return ulp_max_; }
  double abs_max() const { return abs_max_; }
  double rel_l2() const;
  double equal_share() const;
  const std::string& worst() const { return worst_; }      // "layers.3.qr row 5"; empty: all equal
  const std::string& failure() const { return failure_; }  // first reason of fail() or a NaN
  Verdict verdict() const;

 private:
  struct Row {  // of one add()
    int64_t unequal = 0;
    int64_t ulp_max = 0;
    int64_t loud_ulp_max = 0;  // of differences that f32 sums of the row's size can't explain
    double difference_squares = 0;
    double want_squares = 0;
  };
  // Returns false when a number is NaN, or infinite on one side.
  bool compare(float got, float want, bool is_bf16, double noise, Row* row);
  void note_row(const Row& row, int64_t cols);
  bool meets_limit() const;
  bool is_explained() const;
  void note_worst(double difference, std::string_view where, int64_t row);

  std::string name_;
  Limit limit_;
  int64_t count_ = 0;
  int64_t equal_ = 0;
  int64_t ulp_max_ = 0;       // of the stored type
  int64_t loud_ulp_max_ = 0;  // the same as in Row, of rows that no flipped code moved
  int64_t rows_ = 0;
  int64_t moved_rows_ = 0;  // kQuantisedBf16: rows with a flipped code
  int64_t moved_count_ = 0;
  int64_t moved_unequal_ = 0;
  double moved_rel_l2_max_ = 0;  // of one row
  double abs_max_ = 0;
  double difference_squares_ = 0;
  double want_squares_ = 0;
  std::string worst_;
  std::string failure_;
};

}  // namespace fathom::verify
