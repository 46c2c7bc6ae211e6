#include "model/deepseek_v41/engram.h"

#include <algorithm>

#include "kernels/engram.h"

namespace fathom::v41 {
namespace {

// Compressed ids of a segment's rows; a picture position belongs to no n-gram.
Result<std::vector<int32_t>> compressed_ids(const Pass& pass, const Segment& segment) {
  std::vector<int32_t> ids;
  for (const InputToken& input : segment.tokens) {
    if (input.embedding != nullptr) {
      ids.push_back(kDeadId);
      continue;
    }
    if (static_cast<size_t>(input.token) >= pass.token_map.size())
      return error(
          Code::kInvalidArgument,
          "token {} has no Engram id: the tokenizer knows {} tokens, and a prompt can only "
          "hold those",
          input.token, pass.token_map.size());
    ids.push_back(pass.token_map[static_cast<size_t>(input.token)]);
  }
  return ids;
}

// The table rows of one layer for a segment, to `rows` [rows of the segment, columns].
void hash_segment(const EngramHashing& hashing, const Segment& segment,
                  std::span<const int32_t> ids, std::span<int64_t> rows) {
  std::vector<int32_t> all = segment.state->history();
  const size_t before = all.size();
  all.insert(all.end(), ids.begin(), ids.end());
  const size_t columns = hashing.primes.size();
  for (size_t i = 0; i < ids.size(); ++i)
    hash_position(hashing, std::span(all).first(before + i + 1),
                  rows.subspan(i * columns, columns));
}

// The rows as the golden files hold them; what an observer wrote is what is read.
void show_rows(const Pass& pass, int32_t layer, std::span<int64_t> rows, int64_t row_count) {
  if (!pass.taps.has_observer()) return;
  std::vector<int32_t> shown(rows.begin(), rows.end());
  pass.taps.show(layer, "engram.rows",
                 MatrixView<int32_t>(shown.data(), row_count, pass.config.engram_columns()));
  std::copy(shown.begin(), shown.end(), rows.begin());
}

}  // namespace

Status look_up_engram(const Pass& pass, Step& step) {
  EngramRows& rows = step.engram;
  if (pass.engram.empty()) return Status::ok();
  for (const Segment& segment : step.segments()) {
    FATHOM_ASSIGN(std::vector<int32_t> ids, compressed_ids(pass, segment));
    rows.compressed_ids.push_back(std::move(ids));
  }
  for (size_t i = 0; i < pass.engram.size(); ++i) {
    const int64_t columns = pass.config.engram_columns();
    std::vector<int64_t> of_layer(static_cast<size_t>(step.count() * columns));
    for (size_t s = 0; s < step.segments().size(); ++s) {
      const Segment& segment = step.segments()[s];
      hash_segment(pass.engram[i], segment, rows.compressed_ids[s],
                   std::span(of_layer).subspan(static_cast<size_t>(segment.row * columns)));
    }
    const int32_t layer = pass.config.engram_layer_ids[i];
    show_rows(pass, layer, of_layer, step.count());
    pass.layer(layer).engram->embed->prefetch(of_layer);
    rows.of_layer.push_back(std::move(of_layer));
  }
  return Status::ok();
}

Status inject_engram(const Pass& pass, int32_t layer, Step& step) {
  const EngramWeights& weights = *pass.layer(layer).engram;
  const TextConfig& config = pass.config;
  const auto columns = static_cast<size_t>(config.engram_columns());
  const auto engram = static_cast<size_t>(pass.role(layer).engram);
  const std::vector<int64_t>& all = step.engram.of_layer[engram];
  kernels::Scratch scratch(pass.workspace());
  std::vector<int64_t> wanted;
  for (const int64_t row : step.origin())
    wanted.insert(wanted.end(), all.begin() + row * static_cast<int64_t>(columns),
                  all.begin() + (row + 1) * static_cast<int64_t>(columns));

  FATHOM_TRY(pass.taps.pass(layer, "engram.x_in", step.streams));
  const auto count = static_cast<int64_t>(wanted.size());
  const int64_t width = config.engram_head_dim;
  const MatrixView<uint8_t> codes = {scratch.take<uint8_t>(count * width), count, width};
  const MatrixView<uint8_t> scales = {scratch.take<uint8_t>(count * width / 32), count, width / 32};
  FATHOM_TRY(weights.embed->gather(wanted, {codes.data, static_cast<size_t>(count * width)},
                                   {scales.data, static_cast<size_t>(count * width / 32)}));
  const auto e = take_rows(scratch, step.count(), static_cast<int64_t>(columns) * width);
  const auto kv = take_rows(scratch, step.count(), (config.hc_mult + 1) * config.hidden_size);
  const auto gate = take_rows(scratch, step.count(), config.hc_mult);
  kernels::decode_fp8_rows(codes, scales, {e.data, count, width});
  pass.ops.quantised_linear(e, weights.wkv, kv);
  FATHOM_TRY(pass.taps.pass(layer, "engram.kv", kv));
  const auto weight_count = static_cast<size_t>(config.hc_mult * config.hidden_size);
  const kernels::EngramInjectArgs inject = {.x = step.streams,
                                            .kv = kv,
                                            .q_weight = {weights.q_weight.data, weight_count},
                                            .k_weight = {weights.k_weight.data, weight_count},
                                            .is_dead = step.is_picture(),
                                            .norm_eps = static_cast<float>(config.rms_norm_eps),
                                            .gate = gate,
                                            .round_bf16 = pass.ops.rounds()};
  kernels::engram_gate(pass.ops.context(), inject);
  FATHOM_TRY(pass.taps.pass(layer, "engram.gate", gate));
  kernels::engram_add_value(pass.ops.context(), inject);
  return Status::ok();
}

}  // namespace fathom::v41
