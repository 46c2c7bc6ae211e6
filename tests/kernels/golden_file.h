// Reads the small golden safetensors of kernel tests. kernels may not include io, which has the
// real reader; this one trusts its file, since it is committed.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"

namespace fathom {

class GoldenFile {
 public:
  // `name` below tests/golden, with its folder.
  explicit GoldenFile(const std::string& name) {
    std::ifstream file(std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    bytes_ = text.str();
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes_.data(), 8);
    header_ = parse_json(std::string_view(bytes_).substr(8, header_bytes)).value();
    data_ = 8 + header_bytes;
  }

  bool has(const std::string& tensor) const { return header_.contains(tensor); }
  std::vector<int64_t> shape(const std::string& tensor) const {
    return header_.at(tensor).at("shape").get<std::vector<int64_t>>();
  }
  template <typename T>
  std::vector<T> read(const std::string& tensor) const {
    const auto offsets = header_.at(tensor).at("data_offsets");
    const size_t begin = offsets[0], end = offsets[1];
    std::vector<T> values((end - begin) / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + data_ + begin, end - begin);
    return values;
  }

 private:
  std::string bytes_;
  Json header_;
  size_t data_ = 0;
};

}  // namespace fathom
