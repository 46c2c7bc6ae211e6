// The rules of spec §1.1 that tie fields of the config together: values of lists that are absent,
// and what must hold for the model to be computable. Private to config.cc.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "model/deepseek_v41/config.h"

namespace fathom::v41 {

// The lists as the file gives them; empty optional: absent.
struct GivenLists {
  std::optional<std::vector<int32_t>> compress_ratios;
  std::optional<std::vector<int32_t>> kv_source_layer_ids;
  std::optional<std::vector<int32_t>> index_source_layer_ids;
  std::optional<int32_t> candidate_source_layer_id;
  std::optional<std::vector<int32_t>> engram_layer_ids;
  std::optional<std::vector<int64_t>> engram_num_embeddings;
  std::optional<std::vector<int32_t>> dspark_target_layer_ids;
};

// Fills the lists of `text` from `given` and the default rules.
Status apply_list_rules(const GivenLists& given, TextConfig* text);

// kDataLoss naming the field when fields contradict each other.
Status validate(const Config& config);

}  // namespace fathom::v41
