// A golden folder: index.json and one safetensors file a case (tests/golden/v41-tiny/README.md is
// the format). Every tensor that a case holds must be asked for by a check: what nobody took is
// reported as not produced.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/status.h"
#include "io/safetensors.h"

namespace fathom::verify {

// BF16 and F32 tensors are in `floats`, I32 and U8 ones in `ints`; both flat, row-major.
struct GoldenTensor {
  std::string name;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;  // product of all dimensions but the first
  std::vector<float> floats = {};
  std::vector<int32_t> ints = {};

  bool is_integer() const { return dtype == DType::kI32 || dtype == DType::kU8; }
};

class GoldenCase {
 public:
  static Result<GoldenCase> open(const std::string& folder, const std::string& name, Json entry);

  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_; }
  const std::string& arithmetic() const { return arithmetic_; }  // "official" unless the index says
  const Json& entry() const { return entry_; }                   // the case in index.json

  bool has(std::string_view tensor) const { return file_->find(tensor) != nullptr; }
  // kDataLoss when it is not there or of a dtype that goldens do not have. Marks it as taken.
  Result<const GoldenTensor*> take(const std::string& tensor);
  // The bytes of a tensor, for weights of the gemm case.
  Result<std::span<const uint8_t>> take_bytes(const std::string& tensor);
  void ignore(const std::string& tensor) { taken_.insert(tensor); }
  // Names that no check has asked for; a tensor without numbers (no group is complete) proves
  // nothing.
  std::vector<std::string> untaken() const;
  std::vector<std::string> names() const;

  // The integers of a tensor or of an array in the index.
  Result<std::vector<TokenId>> tokens(const std::string& tensor);

 private:
  std::string name_;
  std::string kind_;
  std::string arithmetic_;
  Json entry_;
  std::unique_ptr<SafetensorsFile> file_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, GoldenTensor, std::less<>> decoded_;
};

struct GoldenFolder {
  std::string path;
  // Names and entries in the order of the index.
  std::vector<std::pair<std::string, Json>> cases;
};

// kNotFound without an index.json, kDataLoss when it is not an index of cases.
Result<GoldenFolder> open_golden_folder(const std::string& path);

}  // namespace fathom::verify
