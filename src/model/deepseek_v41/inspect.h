// What a checkpoint holds, as numbers and as text: `fathom inspect DIR [--json] [--deep]`.
// Opening has validated everything that can be checked without reading the weights; --deep reads
// them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/page_loader.h"
#include "model/deepseek_v41/checkpoint.h"

namespace fathom::v41 {

// A part of the model or a dtype. Parameters are logical elements: two for a byte of packed FP4,
// none for scales.
struct InspectCount {
  std::string name;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t scales = 0;  // E8M0 elements
  int64_t bytes = 0;
};

struct InspectLayer {
  int32_t layer = 0;
  int32_t ratio = 0;
  std::string role;        // "window", "full", "reuse" or "reindex"
  int32_t kv_source = -1;  // -1 for "window"
  int32_t index_source = -1;
  bool is_candidate_source = false;
  bool has_engram = false;
};

// Bytes of memory. A forecast for one sequence in the reference policy, from the shapes alone.
struct InspectMemory {
  int64_t dense = 0;              // weights that every token reads, resident after a load
  int64_t vision = 0;             // loaded too, read by every picture
  int64_t experts_per_token = 0;  // routed experts of one token, all layers
  int64_t experts_all = 0;
  int64_t engram_tables = 0;    // of which a token reads a few dozen rows
  int64_t drafts = 0;           // DSpark stages
  int64_t state_per_token = 0;  // compressed rows and index keys
  int64_t state_fixed = 0;      // windows
};

// Largest resident memory of a run that routes `routed_tokens` tokens one by one and keeps
// `state_tokens`: each may touch other experts. Without the engine's scratch (some 0.7 MB a row of
// a prefill step).
int64_t peak_bytes(const InspectMemory& memory, int64_t routed_tokens, int64_t state_tokens);

struct InspectDeep {
  int64_t bytes = 0;
  double seconds = 0;
  int64_t problem_count = 0;
  std::vector<std::string> problems;   // the first ten, each naming file, tensor and element
  std::vector<std::string> checksums;  // files whose SHA-256 was found equal
};

struct InspectReport {
  std::string directory;
  int64_t shards = 0;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t payload_bytes = 0;
  int64_t file_bytes = 0;  // payload and headers
  int64_t context_tokens = 0;
  int64_t active_parameters = 0;  // that one decoded text token is multiplied with
  std::vector<InspectCount> parts;
  std::vector<InspectCount> dtypes;
  std::vector<InspectLayer> layers;
  std::vector<int32_t> draft_target_layers;
  InspectMemory memory;
  std::vector<std::string> notices;  // what is missing for vision or drafts, unknown fields
  std::optional<InspectDeep> deep;
};

InspectReport inspect_checkpoint(const Checkpoint& checkpoint);

// Reads every weight: non-finite bf16 and f32, NaN codes of FP8, NaN scales, and the SHA-256 of
// each file that SHA256SUMS or SHA256.json in the folder names. Problems are found, not errors; an
// error is a disk that fails or a cancel.
Result<InspectDeep> inspect_deep(const Checkpoint& checkpoint, const LoadOptions& options);

std::string inspect_text(const InspectReport& report);
std::string inspect_json(const InspectReport& report);  // indented, ends with a newline

struct InspectOptions {
  bool is_json = false;
  bool is_deep = false;
  LoadOptions reading;  // for is_deep
};
struct InspectResult {
  std::string output;
  bool is_good = true;  // false: --deep found problems, which `output` lists
};

// The whole command. Errors are those of Checkpoint::open.
Result<InspectResult> run_inspect(const std::string& directory, const InspectOptions& options);

}  // namespace fathom::v41
