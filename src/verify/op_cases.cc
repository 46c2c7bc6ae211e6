// Quantisers and quantised products: single ops on stored inputs.
#include <fmt/format.h>

#include <array>
#include <set>

#include "kernels/linear.h"
#include "kernels/quantise.h"
#include "verify/cases.h"

namespace fathom::verify {
namespace {

struct NamedQuantiser {
  const char* name;
  kernels::Quantiser quantiser;
};
constexpr std::array<NamedQuantiser, 3> kQuantisers = {{
    {"fq8_32", kernels::Quantiser::kFp8Block32},
    {"fq4_32", kernels::Quantiser::kFp4Block32},
    {"fq4_16", kernels::Quantiser::kFp4Block16},
}};

std::vector<int32_t> widen(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// Values by the op, codes and scales by the stored form of each row.
Status compare_quantiser(const kernels::Context& context, const NamedQuantiser& named,
                         const GoldenTensor& x, GoldenCase& golden, std::vector<Tally>* tallies) {
  const std::string name = named.name;
  const int64_t block = kernels::quantiser_block(named.quantiser);
  const int64_t code_cols =
      named.quantiser == kernels::Quantiser::kFp8Block32 ? x.cols : x.cols / 2;
  std::vector<float> values = x.floats;
  kernels::quantise(context, {.x = {values.data(), x.rows, x.cols},
                              .y = {values.data(), x.rows, x.cols},
                              .quantiser = named.quantiser});
  std::vector<uint8_t> codes(static_cast<size_t>(x.rows * code_cols));
  std::vector<uint8_t> scales(static_cast<size_t>(x.rows * x.cols / block));
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto part = [r](auto& all, int64_t cols) {
      return std::span(all).subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols));
    };
    kernels::quantise_row_codes(named.quantiser, part(x.floats, x.cols), part(codes, code_cols),
                                part(scales, x.cols / block));
  }
  FATHOM_ASSIGN(const GoldenTensor* want, golden.take(name));
  tallies->emplace_back(name, Limit::kEqual)
      .add(values, want->floats, want->cols, want->dtype, name);
  FATHOM_ASSIGN(const GoldenTensor* want_codes, golden.take(name + ".codes"));
  tallies->emplace_back(name + ".codes", Limit::kEqual)
      .add(widen(codes), want_codes->ints, want_codes->cols, name + ".codes");
  FATHOM_ASSIGN(const GoldenTensor* want_scales, golden.take(name + ".scales"));
  tallies->emplace_back(name + ".scales", Limit::kEqual)
      .add(widen(scales), want_scales->ints, want_scales->cols, name + ".scales");
  return Status::ok();
}

// One product with quantised activations: fp8.J or fp4.J.
Status compare_product(const kernels::Context& context, const std::string& name, GoldenCase& golden,
                       Tally* tally) {
  FATHOM_ASSIGN(const GoldenTensor* x, golden.take(name + ".x"));
  FATHOM_ASSIGN(const GoldenTensor* y, golden.take(name + ".y"));
  FATHOM_ASSIGN(const std::span<const uint8_t> weight, golden.take_bytes(name + ".weight"));
  FATHOM_ASSIGN(const std::span<const uint8_t> scale, golden.take_bytes(name + ".scale"));
  const bool is_fp4 = name.starts_with("fp4");
  const int64_t weight_bytes = y->cols * x->cols / (is_fp4 ? 2 : 1);
  const int64_t scale_count =
      is_fp4 ? y->cols * (x->cols / 32) : (y->cols + 31) / 32 * ((x->cols + 31) / 32);
  if (static_cast<int64_t>(weight.size()) != weight_bytes ||
      static_cast<int64_t>(scale.size()) != scale_count)
    return error(Code::kDataLoss, "case {}: {} has {} weight bytes and {} scales, {} and {} wanted",
                 golden.name(), name, weight.size(), scale.size(), weight_bytes, scale_count);
  std::vector<float> got(y->floats.size());
  kernels::linear(context, {.x = {x->floats.data(), x->rows, x->cols},
                            .weight = {.dtype = is_fp4 ? DType::kI8 : DType::kF8E4M3,
                                       .rows = y->cols,
                                       .cols = x->cols,
                                       .data = weight.data(),
                                       .scales = scale.data()},
                            .y = {got.data(), y->rows, y->cols},
                            .quantise_activations = true,
                            .round_bf16 = true});
  tally->add(got, y->floats, y->cols, y->dtype, y->name);
  return Status::ok();
}

}  // namespace

Status run_quantiser_case(const Subject& subject, GoldenCase& golden, Report* report) {
  kernels::Workspace workspace;
  const kernels::Context context{*subject.pool, workspace, subject.isa};
  FATHOM_ASSIGN(const GoldenTensor* x, golden.take("x"));
  std::vector<Tally> tallies;
  for (const NamedQuantiser& named : kQuantisers)
    if (golden.has(named.name)) FATHOM_TRY(compare_quantiser(context, named, *x, golden, &tallies));
  report->add(golden.name(), "op", std::move(tallies));
  return Status::ok();
}

Status run_gemm_case(const Subject& subject, GoldenCase& golden, Report* report) {
  kernels::Workspace workspace;
  const kernels::Context context{*subject.pool, workspace, subject.isa};
  std::set<std::string> products;
  for (const std::string& name : golden.names())
    if (name.ends_with(".x")) products.insert(name.substr(0, name.size() - 2));
  std::vector<Tally> tallies = {{"fp4.y", Limit::kStoredBf16}, {"fp8.y", Limit::kStoredBf16}};
  for (const std::string& name : products)
    FATHOM_TRY(compare_product(context, name, golden, &tallies[name.starts_with("fp4") ? 0 : 1]));
  report->add(golden.name(), "op", std::move(tallies));
  return Status::ok();
}

}  // namespace fathom::verify
