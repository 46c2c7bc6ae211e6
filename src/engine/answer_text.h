// Tokens of one answer to the deltas that a client sees: reasoning split from content, stop strings
// found, characters never cut, logprob entries kept in step with the text they belong to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer.h"
#include "engine/loaded_model.h"
#include "engine/stop_strings.h"
#include "text/output_parser.h"
#include "text/stream_decoder.h"

namespace fathom {

class AnswerText {
 public:
  // `loaded` and `request` outlive it.
  AnswerText(const LoadedModel& loaded, const AnswerRequest& request);

  // What may be sent after this token.
  AnswerDelta push(const SampledToken& token);
  // What was held back. No push after this.
  AnswerDelta finish();

  bool in_reasoning() const { return parser_ && parser_->in_reasoning(); }
  int64_t reasoning_tokens() const { return reasoning_tokens_; }
  const std::optional<std::string>& stop_string() const { return stops_.matched(); }
  // True when no more text can come: a stop string matched, or a tool call began that nobody
  // offered a tool for.
  bool is_over() const { return stops_.matched() || (parser_ && parser_->has_tool_markup()); }

 private:
  struct HeldReport {
    int64_t text_begin = 0;  // content bytes decoded before this token
    TokenReport report;
  };

  void add_content(std::string_view text, AnswerDelta* delta);
  void add_events(const std::vector<text::OutputEvent>& events, AnswerDelta* delta);
  void release_reports(AnswerDelta* delta);
  TokenReport describe(const SampledToken& token) const;
  TokenChoice choice(TokenId token, double logprob) const;

  const LoadedModel& loaded_;
  const AnswerRequest& request_;
  std::unique_ptr<text::OutputParser> parser_;  // null: raw
  text::StreamDecoder raw_;
  StopMatcher stops_;
  std::vector<HeldReport> held_reports_;
  int64_t content_bytes_ = 0;  // decoded, shown or held
  int64_t shown_bytes_ = 0;
  int64_t reasoning_tokens_ = 0;
};

}  // namespace fathom
