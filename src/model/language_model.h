// What the engine sees of a model: tokens and pictures in, logits out, state in between.
// deepseek_v41/model.h implements it; engine tests implement it with a script.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  int64_t draft_tokens_max = 0;  // drafts of one pass (DSpark block size); 0: no drafter
  // What a step of 1 + i rows reads of the weights, and a draft pass, when every row is routed on
  // its own: what they cost where reading weights is what takes the time. [1 + draft_tokens_max]
  std::vector<double> step_bytes = {};
  double draft_bytes = 0;
};

// State of one sequence (spec §8.1). Made by LanguageModel::new_sequence, owned by an engine
// session, touched by the engine thread only. After a failed or cancelled forward its content is
// undefined and it may only be destroyed.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
  virtual int64_t token_count() const = 0;  // positions held; the next row has this position
  virtual int64_t bytes() const = 0;        // memory held now
  // Forgets the positions from `token_count` on: everything is, bit for bit, as if they had never
  // been run. For drafts that were rejected: at most ModelInfo::draft_tokens_max positions, all of
  // the last forward; kInvalidArgument beyond. A model without a drafter need not have it.
  virtual Status truncate(int64_t /*token_count*/) {
    return error(Code::kUnsupported, "positions of this model can't be taken back");
  }
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

// One place of a chain of drafts, as the drafter offers it.
struct DraftOffer {
  std::span<float> logits;  // [V], may be changed
  float confidence = 0;     // 0..1, that the token drafted here is accepted if those before it are
};
// The token drafted there; none: the chain ends before it.
using DraftChoice = std::function<std::optional<TokenId>(const DraftOffer&)>;

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

  // One draft pass (spec §7.3): guesses of the tokens behind `next`, the token of position
  // state.token_count(), which has not been run yet. Asks `choose` for one place after another, at
  // most draft_tokens_max times. Changes nothing that forward computes. kUnsupported without a
  // drafter; otherwise errors and thread as of forward.
  virtual Status draft(SequenceState& /*state*/, TokenId /*next*/, const DraftChoice& /*choose*/,
                       const CancelFlag* /*cancel*/) {
    return error(Code::kUnsupported, "this model has no drafter");
  }

  // Span tokens of a picture of this size, or why it cannot be used (spec §6.1). Cheap, any thread.
  virtual Result<int64_t> picture_token_count(int64_t width, int64_t height) const = 0;

  // Resize, ViT, aligner, placement. Engine thread only. kUnsupported without vision.
  virtual Result<PictureTokens> encode_picture(const RgbImage& image, const CancelFlag* cancel) = 0;
};

}  // namespace fathom
