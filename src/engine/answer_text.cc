#include "engine/answer_text.h"

#include <utility>

namespace fathom {

AnswerText::AnswerText(const LoadedModel& loaded, const AnswerRequest& request)
    : loaded_(loaded),
      request_(request),
      raw_(*loaded.tokenizer, /*skip_special=*/true),
      stops_(request.stop_strings) {
  if (!request.is_raw)
    parser_ = std::make_unique<text::OutputParser>(*loaded.tokenizer, loaded.markers,
                                                   request.starts_in_reasoning);
}

TokenChoice AnswerText::choice(TokenId token, double logprob) const {
  const std::string bytes(loaded_.tokenizer->token_bytes(token));
  return {token, text::to_valid_utf8(bytes), bytes, logprob};
}

TokenReport AnswerText::describe(const SampledToken& token) const {
  TokenReport report{choice(token.token, token.logprob), {}};
  for (const TokenLogprob& other : token.top)
    report.top.push_back(choice(other.token, other.logprob));
  return report;
}

void AnswerText::add_content(std::string_view text, AnswerDelta* delta) {
  content_bytes_ += static_cast<int64_t>(text.size());
  const bool was_matched = stops_.matched().has_value();
  const std::string shown = stops_.feed(text);
  shown_bytes_ += static_cast<int64_t>(shown.size());
  delta->content += shown;
  if (!was_matched && stops_.matched() && request_.includes_stop_string)
    delta->content += *stops_.matched();
}

void AnswerText::add_events(const std::vector<text::OutputEvent>& events, AnswerDelta* delta) {
  for (const text::OutputEvent& event : events) {
    if (event.kind == text::OutputEvent::Kind::kReasoning) delta->reasoning += event.text;
    if (event.kind == text::OutputEvent::Kind::kContent) add_content(event.text, delta);
  }
}

// Entries go out with their text. After a stop string, tokens that lie wholly in what was cut away
// have none to go with.
void AnswerText::release_reports(AnswerDelta* delta) {
  if (!stops_.matched() && stops_.held_bytes() > 0) return;
  for (HeldReport& held : held_reports_)
    if (!stops_.matched() || held.text_begin < shown_bytes_)
      delta->logprobs.push_back(std::move(held.report));
  held_reports_.clear();
}

AnswerDelta AnswerText::push(const SampledToken& token) {
  AnswerDelta delta;
  const bool is_reasoning = in_reasoning();
  if (is_reasoning) ++reasoning_tokens_;
  const bool is_content = !is_reasoning && !loaded_.tokenizer->is_special(token.token) &&
                          !(parser_ && token.token == loaded_.markers.think_close);
  const int64_t text_begin = content_bytes_;
  if (parser_)
    add_events(parser_->push(token.token), &delta);
  else
    add_content(raw_.push(token.token), &delta);
  if (request_.wants_logprobs && is_content && !(parser_ && parser_->has_tool_markup()))
    held_reports_.push_back({text_begin, describe(token)});
  release_reports(&delta);
  return delta;
}

AnswerDelta AnswerText::finish() {
  AnswerDelta delta;
  if (parser_)
    add_events(parser_->finish(), &delta);
  else
    add_content(raw_.flush(), &delta);
  if (!stops_.matched()) {
    const std::string rest = stops_.finish();
    shown_bytes_ += static_cast<int64_t>(rest.size());
    delta.content += rest;
  }
  release_reports(&delta);
  return delta;
}

}  // namespace fathom
