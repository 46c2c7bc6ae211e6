#include "model/blocks/taps.h"

#include <bit>
#include <cmath>

namespace fathom {
namespace {

// Says where the first non-finite value stands.
Status not_finite(const std::string& name, MatrixView<const float> values) {
  for (int64_t r = 0; r < values.rows; ++r)
    for (int64_t c = 0; c < values.cols; ++c)
      if (const float value = values.row(r)[static_cast<size_t>(c)]; !std::isfinite(value))
        return error(Code::kInternal,
                     "{}: row {}, column {} is {}, a finite number wanted; the request is stopped "
                     "(run `fathom inspect --deep` on the model to look for damaged weights)",
                     name, r, c, value);
  return Status::ok();
}

}  // namespace

bool all_finite(MatrixView<const float> values) {
  // Adding one to an exponent of all ones carries into the sign bit.
  uint32_t carried = 0;
  for (int64_t r = 0; r < values.rows; ++r)
    for (const float value : values.row(r))
      carried |= (std::bit_cast<uint32_t>(value) & 0x7f800000U) + 0x00800000U;
  return (carried & 0x80000000U) == 0;
}

std::string Taps::place(int32_t layer) const {
  return layer < layer_count_ ? fmt::format("layers.{}.", layer)
                              : fmt::format("mtp.{}.", layer - layer_count_);
}

Status Taps::pass(int32_t layer, std::string_view name, MatrixView<float> values) const {
  if (observer_ == nullptr && all_finite(values)) return Status::ok();
  return pass(fmt::format("{}{}", place(layer), name), values);
}

Status Taps::pass(int32_t layer, std::string_view site, std::string_view name,
                  MatrixView<float> values) const {
  if (observer_ == nullptr && all_finite(values)) return Status::ok();
  return pass(fmt::format("{}{}.{}", place(layer), site, name), values);
}

Status Taps::pass(std::string_view name, MatrixView<float> values) const {
  if (!all_finite(values)) return not_finite(std::string(name), values);
  if (observer_ != nullptr) observer_->tap(std::string(name), values);
  return Status::ok();
}

void Taps::show(int32_t layer, std::string_view name, MatrixView<float> values) const {
  if (observer_ != nullptr) observer_->tap(fmt::format("{}{}", place(layer), name), values);
}

void Taps::show(int32_t layer, std::string_view name, MatrixView<int32_t> values) const {
  if (observer_ != nullptr) observer_->tap(fmt::format("{}{}", place(layer), name), values);
}

void Taps::show(std::string_view name, MatrixView<int32_t> values) const {
  if (observer_ != nullptr) observer_->tap(std::string(name), values);
}

}  // namespace fathom
