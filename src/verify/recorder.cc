#include "verify/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "tensor/codec.h"
#include "verify/tap_inputs.h"

namespace fathom::verify {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The part of `values` from `row` on, flat.
template <typename T>
std::span<const T> rows_of(const std::vector<T>& values, int64_t row, int64_t rows, int64_t cols) {
  return std::span(values).subspan(static_cast<size_t>(row * cols),
                                   static_cast<size_t>(rows * cols));
}

template <typename T>
std::vector<T> flat(MatrixView<T> values) {
  std::vector<T> out;
  for (int64_t r = 0; r < values.rows; ++r)
    out.insert(out.end(), values.row(r).begin(), values.row(r).end());
  return out;
}

template <typename T>
void overwrite(std::span<const T> from, MatrixView<T> values) {
  for (int64_t r = 0; r < values.rows; ++r)
    std::copy_n(from.data() + r * values.cols, values.cols, values.row(r).data());
}

// index_w is a bf16 result times kappa. Where kappa is no power of two it needs f32, which the
// specification wants; the official code rounds it to bf16 again.
bool is_scaled_bf16(std::string_view tap) {
  return tap.ends_with(".index_w");
}

// Ops that quantise a result of their own: before their last product, or at their end.
bool has_quantiser(std::string_view tap) {
  constexpr std::array kTaps = {".attn_out",      ".ffn_out", ".shared_out", ".window_kv",
                                ".compressed_kv", ".index_k", ".index_q"};
  return std::any_of(kTaps.begin(), kTaps.end(),
                     [tap](std::string_view name) { return tap.ends_with(name); });
}

}  // namespace

std::string pool_name(const std::string& tensor) {
  std::string out;
  size_t at = 0;
  while (at <= tensor.size()) {
    const size_t dot = std::min(tensor.find('.', at), tensor.size());
    std::string part = tensor.substr(at, dot - at);
    if (part.starts_with('p') && is_number(part.substr(1))) part = "0";  // a draft pass
    if (part.starts_with("picture") && is_number(part.substr(7))) part = "picture";
    if (!is_number(part)) out += (out.empty() ? "" : ".") + part;
    at = dot + 1;
  }
  return out;
}

// Whether the op that makes `name` ran on the golden's own numbers alone. An input that the case
// does not hold may be replaced by its own inputs, one step further back; not so `o`, whose
// arithmetic differs.
bool Recorder::is_fed(const std::string& name) const {
  if (!options_.feeds) return false;
  const auto holds = [&](const std::string& input) { return golden_->has(prefix_ + input); };
  for (const std::string& input : tap_inputs(config_, name)) {
    if (holds(input)) continue;
    const std::vector<std::string> further = tap_inputs(config_, input);
    const bool is_o = input.ends_with(".o") && !options_.is_o_judged;
    if (is_o || !std::all_of(further.begin(), further.end(), holds)) return false;
  }
  return true;
}

Limit Recorder::limit_of(const std::string& name, const GoldenTensor& tensor) const {
  if (name.starts_with("picture")) {
    if (name.ends_with(".vit_out")) return Limit::kVisionTower;
    if (name.ends_with(".aligner_out"))
      return options_.is_smooth ? Limit::kSmoothTap : Limit::kChain;
    return Limit::kEqual;
  }
  if (!is_fed(name) || (name.ends_with(".o") && !options_.is_o_judged)) return Limit::kPrinted;
  // Without quantisers scores are not exact, so that a list may differ where two are equal.
  if (tensor.is_integer())
    return options_.is_smooth && !name.ends_with("engram.rows") ? Limit::kPrinted : Limit::kEqual;
  if (options_.is_smooth) return Limit::kSmoothTap;
  if (name.ends_with("engram.gate")) return Limit::kGate;
  if (is_scaled_bf16(name)) return Limit::kStoredBf16;
  if (tensor.dtype != DType::kBF16) return Limit::kFull;
  return has_quantiser(name) ? Limit::kQuantisedBf16 : Limit::kStoredBf16;
}

Recorder::Place* Recorder::find(const std::string& tap, int64_t rows, int64_t cols) {
  // Logits are compared end to end, by the case itself.
  if (!is_on_ || tap == "logits") return nullptr;
  std::string name = tap;
  if (name.starts_with("picture0.")) name = fmt::format("picture{}{}", picture_, name.substr(8));
  const std::string full = prefix_ + name;
  if (!golden_->has(full)) return nullptr;
  const Result<const GoldenTensor*> tensor = golden_->take(full);
  const Limit limit = tensor ? limit_of(name, **tensor) : Limit::kEqual;
  const std::string pool = pool_name(full);
  const std::string key = fmt::format("{} {}", pool, static_cast<int>(limit));
  const auto [place, is_first] = places_.try_emplace(full);
  if (is_first) place->second = {.tensor = nullptr, .row = 0, .pool = key};
  Tally& tally = tallies_.try_emplace(key, pool, limit).first->second;
  if (!tensor) {
    tally.fail(tensor.status().message());
    return nullptr;
  }
  place->second.tensor = *tensor;
  if (cols != (*tensor)->cols || place->second.row + rows > (*tensor)->rows) {
    tally.fail(fmt::format("{}: [{}, {}] after {} rows, the golden is [{}, {}]", full, rows, cols,
                           place->second.row, (*tensor)->rows, (*tensor)->cols));
    return nullptr;
  }
  return &place->second;
}

void Recorder::tap(const std::string& name, MatrixView<float> values) {
  Place* place = find(name, values.rows, values.cols);
  if (place == nullptr) return;
  const GoldenTensor& golden = *place->tensor;
  Tally& tally = tallies_.at(place->pool);
  if (golden.is_integer()) return tally.fail(golden.name + ": integers in the golden");
  const auto want = rows_of(golden.floats, place->row, values.rows, values.cols);
  std::vector<float> got = flat(values);
  const bool is_scaled = is_scaled_bf16(golden.name) && !options_.is_smooth;
  if (is_scaled && golden.dtype == DType::kBF16)
    std::transform(got.begin(), got.end(), got.begin(), round_to_bf16);
  tally.add(got, want, values.cols, is_scaled ? DType::kBF16 : golden.dtype, golden.name,
            place->row);
  if (options_.feeds) overwrite(want, values);
  place->row += values.rows;
}

void Recorder::tap(const std::string& name, MatrixView<int32_t> values) {
  // The kinds of a picture's span come as a row; goldens hold them one a row.
  if (name.ends_with(".types")) values = {values.data, values.cols, 1};
  Place* place = find(name, values.rows, values.cols);
  if (place == nullptr) return;
  const GoldenTensor& golden = *place->tensor;
  Tally& tally = tallies_.at(place->pool);
  if (!golden.is_integer()) return tally.fail(golden.name + ": not integers in the golden");
  const auto want = rows_of(golden.ints, place->row, values.rows, values.cols);
  tally.add(flat(values), want, values.cols, golden.name, place->row);
  if (options_.feeds) overwrite(want, values);
  place->row += values.rows;
}

std::vector<Tally> Recorder::finish() {
  for (const auto& [name, place] : places_) {
    if (place.tensor == nullptr || place.row == place.tensor->rows) continue;
    tallies_.at(place.pool)
        .fail(fmt::format("{}: {} rows, the golden has {}", name, place.row, place.tensor->rows));
  }
  std::vector<Tally> out;
  Tally total("all bf16 results", Limit::kAllStoredBf16);
  for (auto& [name, tally] : tallies_) {
    const bool is_stored =
        tally.limit() == Limit::kStoredBf16 || tally.limit() == Limit::kQuantisedBf16;
    if (is_stored) total.add_counts(tally);
    out.push_back(std::move(tally));
  }
  if (total.count() > 0) out.push_back(std::move(total));
  places_.clear();
  tallies_.clear();
  return out;
}

}  // namespace fathom::verify
