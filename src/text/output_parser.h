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
  // What the DSML tag being read is for.
  enum class Tag { kNone, kOpen, kClose };

  void push_text(std::string_view bytes);
  void begin_tag();
  void push_tag(std::string_view bytes);
  void end_tag();
  void push_quoted(std::string_view bytes);
  void switch_to(State state);
  void release_held();
  void emit(std::string_view bytes);
  void append(OutputEvent::Kind kind, std::string text);
  OutputEvent::Kind kind() const;
  std::vector<OutputEvent> take_events();

  const Tokenizer* tokenizer_;
  MarkerIds markers_;
  State state_;
  bool is_first_ = true;  // nothing but newlines and special tokens came so far
  std::string held_;      // trailing newlines and "<" or "</": perhaps the start of a DSML tag
  Tag tag_ = Tag::kNone;
  std::string tag_text_;      // from "<" or "</" on, while tag_ is not kNone
  bool is_in_quote_ = false;  // Reasoning: a calls block is being held in quoted_
  std::string quoted_;
  Utf8Stream stream_;
  std::vector<OutputEvent> events_;
};

}  // namespace fathom::text
