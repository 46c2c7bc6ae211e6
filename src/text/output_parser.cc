#include "text/output_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fathom::text {

namespace {

constexpr std::array<std::string_view, 5> kTagNames = {"calls", "tool_calls", "function_calls",
                                                       "invoke", "parameter"};

enum class TagMatch { kPending, kOpens, kCloses, kNone };

// Is `tag`, which begins with "<｜DSML｜" or "</｜DSML｜", the beginning of a tool tag? V4.1 models
// sometimes write V4's names and the reverse, so one space before the name is optional.
TagMatch match_tag(std::string_view tag) {
  const bool closes = tag.starts_with("</");
  tag.remove_prefix((closes ? 2 : 1) + kDsml.size());
  if (tag.starts_with(' ')) tag.remove_prefix(1);
  const size_t end = tag.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  const std::string_view name = tag.substr(0, end);
  if (end == std::string_view::npos) {
    const bool may_be = std::any_of(kTagNames.begin(), kTagNames.end(),
                                    [&](auto known) { return known.starts_with(name); });
    return may_be ? TagMatch::kPending : TagMatch::kNone;
  }
  if (std::find(kTagNames.begin(), kTagNames.end(), name) == kTagNames.end())
    return TagMatch::kNone;
  if (closes) return tag[end] == '>' ? TagMatch::kCloses : TagMatch::kNone;
  const bool is_whole = tag[end] == '>' || tag[end] == ' ' || tag[end] == '\n';
  return is_whole ? TagMatch::kOpens : TagMatch::kNone;
}

// Longest text that find_tag looks for; a tag cannot begin further back than this.
constexpr size_t kTagBytesMax = 64;

// End of the first tag in `block`, from `from` on, that is `begin`, the DSML marker, perhaps a
// space, and one of `names` with what follows it; npos when there is none.
size_t find_tag(std::string_view block, size_t from, std::string_view begin,
                std::initializer_list<std::string_view> names) {
  const std::string marker = std::string(begin).append(kDsml);
  for (size_t at = block.find(marker, from); at != std::string_view::npos;
       at = block.find(marker, at + 1)) {
    size_t name_at = at + marker.size();
    if (block.substr(name_at).starts_with(' ')) ++name_at;
    for (const auto name : names)
      if (block.substr(name_at).starts_with(name)) return name_at + name.size();
  }
  return std::string_view::npos;
}

// Where the bytes begin that may yet turn out to be the start of a DSML tag.
size_t held_begin(std::string_view text) {
  size_t begin = text.size();
  if (text.ends_with("</"))
    begin -= 2;
  else if (text.ends_with("<"))
    begin -= 1;
  while (begin > 0 && text[begin - 1] == '\n') --begin;
  return begin;
}

}  // namespace

OutputParser::OutputParser(const Tokenizer& tokenizer, const MarkerIds& markers,
                           bool starts_in_reasoning)
    : tokenizer_(&tokenizer),
      markers_(markers),
      state_(starts_in_reasoning ? State::kReasoning : State::kContent) {}

std::vector<OutputEvent> OutputParser::push(TokenId id) {
  if (is_hidden(id)) return {};
  const std::string_view bytes = tokenizer_->token_bytes(id);
  const bool was_first = std::exchange(is_first_, false);
  const bool is_reasoning = state_ == State::kReasoning;
  if (state_ == State::kCalls) {
    emit(bytes);
  } else if (id == markers_.think_close && is_reasoning) {
    end_reasoning();
  } else if (id == markers_.think_close && block_.empty()) {
    // A stray one: it says what is so already.
  } else if (id == markers_.think_open && was_first) {
    state_ = State::kReasoning;
  } else if (!block_.empty()) {
    push_block(bytes);
  } else if (!tag_.empty()) {
    push_tag(bytes);
  } else if (id == markers_.dsml && held_.ends_with("</")) {
    held_.resize(held_.size() - 2);
    tag_ = "</" + std::string(kDsml);
  } else if (id == markers_.dsml && held_.ends_with("<")) {
    held_.resize(held_.size() - 1);
    tag_ = "<" + std::string(kDsml);
  } else {
    push_text(bytes);
  }
  return take_events();
}

std::vector<OutputEvent> OutputParser::finish() {
  if (!block_.empty() || !tag_.empty()) {
    begin_calls();
  } else {
    emit(held_);
    held_.clear();
  }
  flush_character();
  return take_events();
}

// Protocol, not text: special tokens and the markers that only a prompt may hold.
bool OutputParser::is_hidden(TokenId id) const {
  return tokenizer_->is_special(id) || id == markers_.bos || id == markers_.eos ||
         id == markers_.user || id == markers_.assistant || id == markers_.system ||
         id == markers_.image;
}

// </think> inside reasoning. Whatever was held is reasoning; a calls block was only quoted.
void OutputParser::end_reasoning() {
  emit(held_ + tag_ + take_block());
  held_.clear();
  tag_.clear();
  flush_character();
  state_ = State::kContent;
}

void OutputParser::push_text(std::string_view bytes) {
  held_ += bytes;
  const size_t begin = held_begin(held_);
  emit(std::string_view(held_).substr(0, begin));
  held_.erase(0, begin);
}

void OutputParser::push_tag(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    tag_ += bytes[i];
    const TagMatch match = match_tag(tag_);
    if (match == TagMatch::kPending) continue;
    const std::string_view rest = bytes.substr(i + 1);
    const std::string tag = std::exchange(tag_, {});
    if (match == TagMatch::kOpens) {
      const std::string newlines = std::exchange(held_, {});
      push_block(newlines + tag + std::string(rest));
    } else if (match == TagMatch::kCloses) {
      push_text(rest);  // closes nothing: swallowed
    } else {
      push_text(tag + std::string(rest));
    }
    return;
  }
}

// In content a block with a call in it is a call. In reasoning that shows only when the turn ends.
void OutputParser::push_block(std::string_view bytes) {
  const size_t from = block_.size() - std::min(block_.size(), kTagBytesMax);
  block_ += bytes;
  if (block_end_ == std::string::npos)
    block_end_ = find_tag(block_, from, "</", {"calls>", "tool_calls>", "function_calls>"});
  const bool is_closed = block_end_ != std::string::npos;
  if (state_ == State::kContent) {
    if (find_tag(block_, from, "<", {"invoke"}) != std::string::npos) {
      begin_calls();
    } else if (is_closed) {  // an empty block: swallowed
      const size_t end = block_end_;
      push_text(take_block().substr(end));
    }
  } else if (is_closed && block_.find_first_not_of(" \t\r\n", block_end_) != std::string::npos) {
    push_text(take_block());  // quoted
  }
}

std::string OutputParser::take_block() {
  block_end_ = std::string::npos;
  return std::exchange(block_, {});
}

void OutputParser::begin_calls() {
  flush_character();
  state_ = State::kCalls;
  emit(held_ + tag_ + take_block());
  held_.clear();
  tag_.clear();
}

void OutputParser::emit(std::string_view bytes) {
  append(stream_.push(bytes));
}

void OutputParser::flush_character() {
  append(stream_.flush());
}

void OutputParser::append(std::string text) {
  if (text.empty()) return;
  const auto kind = state_ == State::kReasoning ? OutputEvent::Kind::kReasoning
                    : state_ == State::kContent ? OutputEvent::Kind::kContent
                                                : OutputEvent::Kind::kToolMarkup;
  if (!events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
  } else {
    events_.push_back({kind, std::move(text)});
  }
}

std::vector<OutputEvent> OutputParser::take_events() {
  return std::exchange(events_, {});
}

}  // namespace fathom::text
