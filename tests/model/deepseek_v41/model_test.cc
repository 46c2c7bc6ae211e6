#include "model/deepseek_v41/model.h"

#include <algorithm>
#include <cmath>

#include "tests/model/deepseek_v41/tiny_model.h"

namespace fathom::v41 {
namespace {

struct Fixture {
  std::vector<TokenId> ids;
  std::vector<float> smooth;  // [n, V]
};

Fixture read_prefill(const std::string& path) {
  auto file = SafetensorsFile::open(golden_path(path));
  EXPECT_TRUE(file.is_ok()) << file.status().message();
  const auto ids = (*file)->span_of<int32_t>("ids", DType::kI32);
  const auto smooth = (*file)->span_of<float>("logits_smooth", DType::kF32);
  EXPECT_TRUE(ids.is_ok() && smooth.is_ok());
  return {{ids->begin(), ids->end()}, {smooth->begin(), smooth->end()}};
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::isfinite(a[i]) ? std::max(worst, std::abs(a[i] - b[i])) : INFINITY;
  return worst;
}

// smooth is a smooth function, so a difference above 1e-4 is a mistake (golden README).
TEST(Model, AgreesWithTheOfficialCodeWithoutRoundings) {
  ThreadPool pool(2);
  for (const char* path :
       {"v41-tiny/prefill-n001", "v41-tiny/prefill-n097", "v41-wide/prefill-n130"}) {
    const Fixture fixture = read_prefill(std::string(path) + ".safetensors");
    const auto checkpoint = open_golden(std::string(path).substr(0, 8));
    for (const kernels::Isa isa : kernels::available_isas()) {
      const auto model = make_model(checkpoint, pool, {.policy = "smooth", .isa = isa});
      EXPECT_LE(largest_difference(run_alone(*model, fixture.ids), fixture.smooth), 1e-4F)
          << path << " on " << kernels::isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace fathom::v41
