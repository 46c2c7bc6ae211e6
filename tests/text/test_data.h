// Where the tests of this room find their files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "base/json.h"
#include "text/tokenizer.h"

namespace fathom::text {

inline std::string golden_path(const std::string& name) {
  return std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + name;
}

inline std::string read_test_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " is missing";
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Json read_golden(const std::string& name) {
  auto json = parse_json(read_test_file(golden_path(name)));
  EXPECT_TRUE(json) << name << ": " << json.status().message();
  return json ? std::move(json.value()) : Json();
}

// The released file, which is too large to be committed.
inline std::string released_tokenizer_path(const std::string& version) {
  const char* folder = std::getenv("FATHOM_TEST_DATA");
  const std::string root = folder ? folder : std::string(FATHOM_SOURCE_DIR) + "/build/test-data";
  return root + "/v41-tokenizer" + (version == "v4" ? "/v4" : "") + "/tokenizer.json";
}

// Loaded once for all tests of the program. Ends the program when the file is missing: every test
// would fail the same way.
inline const Tokenizer& released_tokenizer(const std::string& version = "v41") {
  static const auto load = [](const std::string& v) {
    auto tokenizer = Tokenizer::load(released_tokenizer_path(v));
    if (!tokenizer) {
      ADD_FAILURE() << tokenizer.status().message()
                    << ": the released tokenizer is needed; run `./dev setup`";
      std::exit(1);
    }
    return std::move(tokenizer.value());
  };
  static const std::unique_ptr<Tokenizer> v41 = load("v41");
  if (version == "v41") return *v41;
  static const std::unique_ptr<Tokenizer> v4 = load("v4");
  return *v4;
}

inline std::unique_ptr<Tokenizer> stub_tokenizer() {
  auto tokenizer = Tokenizer::load(golden_path("v41-tiny/checkpoint/tokenizer.json"));
  EXPECT_TRUE(tokenizer) << tokenizer.status().message();
  return tokenizer ? std::move(tokenizer.value()) : nullptr;
}

}  // namespace fathom::text
