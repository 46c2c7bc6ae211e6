// `linear` against what the official kernels computed, and the cut of a weight into rows.
#include "kernels/linear.h"
#include "tests/kernels/golden_file.h"
#include "tests/kernels/kernel_test.h"

namespace fathom::kernels {
namespace {

std::vector<float> widened(const std::vector<uint16_t>& bits) {
  std::vector<float> values(bits.size());
  std::ranges::transform(bits, values.begin(), bf16_to_f32);
  return values;
}

// A case of the golden file with its weight in memory that a WeightView can point into.
struct GoldenGemm {
  Matrix<float> x;
  std::vector<uint8_t> weight, scale;
  WeightView view;
  std::vector<float> y;
};

GoldenGemm load_gemm(const GoldenFile& golden, const std::string& name, bool is_fp4) {
  const auto x_shape = golden.shape(name + ".x"), w_shape = golden.shape(name + ".weight");
  GoldenGemm gemm{Matrix<float>(x_shape[0], x_shape[1]),
                  golden.read<uint8_t>(name + ".weight"),
                  golden.read<uint8_t>(name + ".scale"),
                  {},
                  widened(golden.read<uint16_t>(name + ".y"))};
  gemm.x.values = widened(golden.read<uint16_t>(name + ".x"));
  gemm.view = {.dtype = is_fp4 ? DType::kI8 : DType::kF8E4M3,
               .rows = w_shape[0],
               .cols = x_shape[1],
               .data = gemm.weight.data(),
               .scales = gemm.scale.data()};
  return gemm;
}

TEST(Linear, GoldenFp8AndFp4WithQuantisedActivations) {
  const GoldenFile golden("v41-tiny/gemm.safetensors");
  for (bool is_fp4 : {false, true}) {
    for (int i = 0; i < 4; ++i) {
      const std::string name = (is_fp4 ? "fp4." : "fp8.") + std::to_string(i);
      const GoldenGemm gemm = load_gemm(golden, name, is_fp4);
      for (Isa isa : available_isas()) {
        ThreadPool pool(2);
        Workspace workspace;
        Matrix<float> x = gemm.x, y(x.rows, gemm.view.rows);
        linear({pool, workspace, isa}, {.x = x,
                                        .weight = gemm.view,
                                        .y = y,
                                        .quantise_activations = true,
                                        .round_bf16 = true});
        // Only the order of the f32 sums may differ: a value within 2^-24 · sqrt(K) of a bf16 tie
        // can round the other way. None does in these cases.
        expect_same_bits(y.values, gemm.y, name + " " + std::string(isa_name(isa)));
      }
    }
  }
}

TEST(WeightRows, GiveTheSameColumnsOfY) {
  const GoldenFile golden("v41-tiny/gemm.safetensors");
  for (bool is_fp4 : {false, true}) {
    const GoldenGemm gemm = load_gemm(golden, is_fp4 ? "fp4.0" : "fp8.0", is_fp4);
    for (Isa isa : available_isas()) {
      ThreadPool pool(1);
      Workspace workspace;
      const Context context{pool, workspace, isa};
      Matrix<float> x = gemm.x, whole(x.rows, 96), part(x.rows, 96);
      linear(context, {.x = x, .weight = gemm.view, .y = whole});
      for (int64_t first : {0, 32, 64}) {
        linear(context, {.x = x,
                         .weight = weight_rows(gemm.view, first, 32),
                         .y = MatrixView<float>(part.row(0) + first, x.rows, 32, 96)});
      }
      expect_same_bits(part.values, whole.values, std::string(isa_name(isa)));
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
