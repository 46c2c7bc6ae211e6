// What the engine sees of a model: tokens and pictures in, logits out, state in between.
// deepseek_v41/model.h implements it; engine tests implement it with a script.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "io/picture/rgb_image.h"

namespace fathom {

struct ModelInfo {
  std::string architecture;        // "deepseek_v41"
  int64_t vocab_count = 0;         // V, columns of the logits
  int64_t hidden_size = 0;         // D
  int64_t context_tokens_max = 0;  // longest sequence the model accepts, prompt and answer together
  TokenId bos_token = 0;
  TokenId eos_token = 0;
  TokenId image_token = -1;  // placeholder id of a picture position; -1 without vision
  bool has_vision = false;
};

// State of one sequence (spec §8.1). Made by LanguageModel::new_sequence, owned by an engine
// session, touched by the engine thread only. After a failed or cancelled forward its content is
// undefined and it may only be destroyed.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
  virtual int64_t token_count() const = 0;  // positions held; the next row has this position
  virtual int64_t bytes() const = 0;        // memory held now
};

// One input position. `embedding` null: embed `token`. Otherwise a picture position: D floats, and
// `token` is the image token.
struct InputToken {
  TokenId token = 0;
  const float* embedding = nullptr;
};

// Consecutive positions of one sequence, the first at state->token_count().
struct SequenceRows {
  SequenceState* state = nullptr;
  std::span<const InputToken> tokens;
  // First absolute position whose logits are wanted, in this step or a later one. Rows before it
  // get no logits and may be trimmed (spec §3.11): in a prefill, the last position of the prompt.
  int64_t logits_from = 0;
};

// Raised by another thread to stop a forward or an encode between two layers.
using CancelFlag = std::atomic<bool>;

// A picture ready to be placed: the rows that replace its one placeholder token (spec §6.4).
struct PictureTokens {
  int64_t count = 0;              // span tokens: start, rows with newlines, end
  std::vector<float> embeddings;  // [count, D]
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual const ModelInfo& info() const = 0;

  // kResourceExhausted when the state of `token_count_max` positions cannot be held.
  virtual Result<std::unique_ptr<SequenceState>> new_sequence(int64_t token_count_max) = 0;

  // Runs all rows and writes logits [n, V], one row for each position >= its logits_from, in order.
  // Errors: kCancelled; kInternal naming layer and op for a non-finite value; kDataLoss on a read
  // error. Called from the engine thread only.
  virtual Status forward(std::span<const SequenceRows> sequences, const CancelFlag* cancel,
                         std::vector<float>* logits) = 0;

  // Span tokens of a picture of this size, or why it cannot be used (spec §6.1). Cheap, any thread.
  virtual Result<int64_t> picture_token_count(int64_t width, int64_t height) const = 0;

  // Resize, ViT, aligner, placement. Engine thread only. kUnsupported without vision.
  virtual Result<PictureTokens> encode_picture(const RgbImage& image, const CancelFlag* cancel) = 0;
};

}  // namespace fathom
