// The observer of verify: compares every tap that a golden case holds and, when feeding, puts the
// golden's numbers in its place, so that the next op runs on the golden's own inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/blocks/observer.h"
#include "model/deepseek_v41/config.h"
#include "verify/golden.h"
#include "verify/tally.h"

namespace fathom::verify {

struct RecorderOptions {
  bool feeds = true;
  // Numbers of a case in this arithmetic carry no suffix.
  bool is_smooth = false;
  // The golden's attention rounds its probabilities, Fathom's does not: `o` is not judged.
  bool is_o_judged = true;
};

class Recorder : public Observer {
 public:
  Recorder(const v41::TextConfig& config, GoldenCase* golden, RecorderOptions options)
      : config_(config), golden_(golden), options_(options) {}

  // Taps are looked up as prefix + name; nothing is compared or fed while off.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  void set_on(bool is_on) { is_on_ = is_on; }
  // The tower names its taps picture0.…; from here on they are those of picture `index`.
  void set_picture(size_t index) { picture_ = index; }

  void tap(const std::string& name, MatrixView<float> values) override;
  void tap(const std::string& name, MatrixView<int32_t> values) override;

  // One tally a quantity and limit, layers pooled. Tensors of which rows were left over have
  // failed.
  std::vector<Tally> finish();

 private:
  struct Place {  // where the next rows of a tensor belong
    const GoldenTensor* tensor = nullptr;
    int64_t row = 0;
    std::string pool;  // its key in tallies_
  };

  // The golden tensor of a tap of `rows` rows, or null when the case has none.
  Place* find(const std::string& name, int64_t rows, int64_t cols);
  Limit limit_of(const std::string& name, const GoldenTensor& tensor) const;
  bool is_fed(const std::string& name) const;

  const v41::TextConfig& config_;
  GoldenCase* golden_;
  RecorderOptions options_;
  std::string prefix_;
  bool is_on_ = true;
  size_t picture_ = 0;
  std::map<std::string, Place> places_;
  std::map<std::string, Tally> tallies_;  // by quantity and limit
};

// "layers.3.qr" and "layers.4.qr" are one quantity, "layers.qr".
std::string pool_name(const std::string& tensor);

}  // namespace fathom::verify
