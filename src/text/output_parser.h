// Sampled token ids to what a client may see: reasoning, content, or the news that a tool call has
// begun (spec prompt-encoding §8). Markers are recognised by id, so that text which merely spells
// one is text. Stop strings and the end of the turn are the engine's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/prompt_profile.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace fathom::text {

struct OutputEvent {
  enum class Kind {
    kReasoning,   // reasoning_content delta
    kContent,     // content delta
    kToolMarkup,  // raw text of a tool-call block; never to be shown as the answer
  };
  Kind kind = Kind::kContent;
  std::string text;  // valid UTF-8, not empty
};

// One answer. States:
//   Reasoning ─</think>─► Content ─calls block─► Calls (to the end)
//   Reasoning ─calls block that the turn ends with─► Calls
// A calls block inside reasoning is held until it is known whether more reasoning follows it: then
// it was only quoted and is given out as reasoning.
class OutputParser {
 public:
  // `tokenizer` outlives the parser. starts_in_reasoning: RenderedPrompt::starts_in_reasoning.
  OutputParser(const Tokenizer& tokenizer, const MarkerIds& markers, bool starts_in_reasoning);

  // What may be sent after this id. Special tokens (EOS too) give nothing.
  std::vector<OutputEvent> push(TokenId id);
  // The turn is over: what was held back. No push after this.
  std::vector<OutputEvent> finish();

  bool in_reasoning() const { return state_ == State::kReasoning; }
  // True from the opening of a calls block on: the answer is a tool call.
  bool has_tool_markup() const { return state_ == State::kCalls; }

 private:
  enum class State { kReasoning, kContent, kCalls };

  bool is_hidden(TokenId id) const;
  void end_reasoning();
  void push_text(std::string_view bytes);
  void push_tag(std::string_view bytes);
  void push_block(std::string_view bytes);
  std::string take_block();
  void begin_calls();
  void emit(std::string_view bytes);
  void flush_character();
  void append(std::string text);
  std::vector<OutputEvent> take_events();

  const Tokenizer* tokenizer_;
  MarkerIds markers_;
  State state_;
  bool is_first_ = true;  // no text and no marker came so far
  // Held back, in the order of the answer; at most one of tag_ and block_ is not empty.
  std::string held_;   // trailing newlines, then "<" or "</": perhaps the start of a DSML tag
  std::string tag_;    // from the "<" of a DSML tag on, until its name is known
  std::string block_;  // from the newlines before a calls block on
  size_t block_end_ = std::string::npos;  // behind the tag that closes it
  Utf8Stream stream_;
  std::vector<OutputEvent> events_;
};

}  // namespace fathom::text
