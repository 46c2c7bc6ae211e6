// One answer as the engine sees it: what is asked for, what is told while it grows, how it ended.
// No JSON and no HTTP here; the server and the command line make these and take them apart.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/draft_wish.h"
#include "engine/picture_input.h"
#include "engine/sampling.h"

namespace fathom {

struct AnswerRequest {
  std::string id;                          // for the log
  std::vector<TokenId> prompt;             // with one placeholder for each picture
  std::vector<int64_t> picture_positions;  // index in `prompt` of each placeholder, ascending
  std::vector<PictureInput> pictures;      // in the same order
  bool starts_in_reasoning = false;
  bool is_raw = false;  // all text is content: no reasoning, no tool markup is looked for

  int64_t answer_tokens_max = 0;  // > 0; cut to what the context still holds
  int64_t answer_tokens_min = 0;  // end-of-turn tokens are not drawn before
  bool ignores_end_of_turn = false;
  std::vector<TokenId> stop_tokens;       // besides the end of the turn
  std::vector<std::string> stop_strings;  // none empty; matched in content only
  bool includes_stop_string = false;      // the match is part of the content

  SamplingParams sampling;
  DraftWish drafts;
  bool wants_logprobs = false;  // of content tokens
  int top_logprobs = 0;
  bool may_reuse_prefix = true;
};

// One token in a list of logprobs. `text` has U+FFFD where `bytes` are not whole characters.
struct TokenChoice {
  TokenId token = 0;
  std::string text;
  std::string bytes;
  double logprob = 0;
};

struct TokenReport {
  TokenChoice chosen;
  std::vector<TokenChoice> top;
};

struct AnswerDelta {
  std::string reasoning;              // at most one of reasoning and content is not empty,
  std::string content;                // except at the border; reasoning is first then
  std::vector<TokenReport> logprobs;  // content tokens; may come with no text (half a character)
  bool is_empty() const { return reasoning.empty() && content.empty() && logprobs.empty(); }
};

enum class FinishReason { kStop, kLength };

struct AnswerUsage {
  int64_t prompt_tokens = 0;      // with picture positions
  int64_t cached_tokens = 0;      // of these, taken from an earlier request
  int64_t image_tokens = 0;       // of these, picture positions
  int64_t completion_tokens = 0;  // with reasoning and the closing end-of-turn token
  int64_t reasoning_tokens = 0;   // of these, up to and including </think>
};

struct AnswerTimings {
  double queue_ms = 0;
  double picture_ms = 0;  // vision tower
  double prefill_ms = 0;
  double decode_ms = 0;  // from the first token on
};

// Drafts at one place of a step that were compared with the model's own tokens.
struct DraftTally {
  int64_t judged = 0;
  int64_t accepted = 0;
};

inline DraftTally total_of(std::span<const DraftTally> places) {
  DraftTally total;
  for (const DraftTally& place : places) {
    total.judged += place.judged;
    total.accepted += place.accepted;
  }
  return total;
}

// Of the whole answer at its end; of what there is so far beside each delta.
struct AnswerSummary {
  FinishReason reason = FinishReason::kStop;
  std::optional<std::string> stop_string;  // the one that matched
  AnswerUsage usage;
  AnswerTimings timings;
  std::vector<DraftTally> drafts;  // by place in a step; empty without a drafter
};

// Told what becomes of one request: any number of progress and deltas, then exactly one on_done or
// on_error, never two calls at once. Calls come from an engine thread (or, for a request cancelled
// while it waits, from the caller of cancel) and must return soon: the engine waits for them.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void on_prefill(int64_t /*done_tokens*/, const AnswerUsage& /*so_far*/) {}
  virtual void on_delta(AnswerDelta delta, const AnswerSummary& so_far) = 0;
  virtual void on_done(const AnswerSummary& summary) = 0;
  virtual void on_error(const Status& status) = 0;
};

}  // namespace fathom
