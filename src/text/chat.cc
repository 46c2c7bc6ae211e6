#include "text/chat.h"

#include <algorithm>
#include <unordered_map>

#include "text/internal/prompt_writer.h"
#include "text/internal/python_json.h"
#include "text/internal/tool_text.h"

namespace fathom::text {

namespace {

using internal::PromptWriter;

constexpr std::string_view kPartBreak = "\n\n";
constexpr std::string_view kResponseFormat =
    "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

// Messages that make one turn of the prompt: one, or neighbouring user and tool messages.
struct Turn {
  enum class Kind { kSystem, kUser, kAssistant, kLatestReminder };
  Kind kind = Kind::kUser;
  std::vector<const ChatMessage*> messages;

  std::optional<Task> task() const { return messages.back()->task; }
};

// Puts the tool results among themselves into the order of the assistant's calls; other messages
// stay. A result of an unknown call counts as the first call's (spec §5.1).
void sort_tool_results(const ChatMessage& assistant, std::vector<const ChatMessage*>* messages) {
  std::unordered_map<std::string_view, size_t> index_of;
  for (const ToolCall& call : assistant.tool_calls) index_of.try_emplace(call.id, index_of.size());
  const auto index = [&](const ChatMessage* result) {
    const auto it = index_of.find(result->tool_call_id);
    return it == index_of.end() ? 0 : it->second;
  };
  std::vector<const ChatMessage*> results;
  for (const auto* message : *messages)
    if (message->role == Role::kTool) results.push_back(message);
  std::stable_sort(results.begin(), results.end(),
                   [&](const auto* a, const auto* b) { return index(a) < index(b); });
  auto next = results.begin();
  for (auto& message : *messages)
    if (message->role == Role::kTool) message = *next++;
}

class ChatRenderer {
 public:
  ChatRenderer(const PromptProfile& profile, std::span<const ChatMessage> messages,
               const ChatOptions& options)
      : profile_(profile), messages_(messages), options_(options) {}

  Result<RenderedPrompt> run() {
    FATHOM_TRY(check_messages());
    FATHOM_TRY(check_options());
    group_turns();
    out_.trusted(kBos);
    FATHOM_TRY(write_head());
    for (size_t i = 0; i < turns_.size(); ++i) write_turn(i);
    write_end();
    return out_.take();
  }

 private:
  using Kind = Turn::Kind;

  // ---- checks

  Status check_messages() const {
    if (messages_.empty()) return error(Code::kInvalidArgument, "messages: is empty");
    for (size_t i = 0; i < messages_.size(); ++i)
      FATHOM_TRY(check_message(messages_[i]).with_context(fmt::format("messages[{}]", i)));
    return {};
  }

  Status check_message(const ChatMessage& message) const {
    for (const ContentPart& part : message.content) {
      const bool is_picture = part.kind == ContentPart::Kind::kPicture;
      if (is_picture && profile_.image_marker.empty())
        return error(Code::kInvalidArgument, "a picture, but prompt profile {} takes none",
                     profile_.name);
      if (is_picture && (message.role == Role::kAssistant || message.role == Role::kLatestReminder))
        return error(Code::kInvalidArgument,
                     "a picture, but only user, system and tool messages may hold pictures");
      if (part.kind == ContentPart::Kind::kUnsupported && message.role != Role::kTool)
        return error(Code::kInvalidArgument, "content of type {} is not supported",
                     part.text.substr(0, 60));
    }
    if (message.role != Role::kAssistant && !message.tool_calls.empty())
      return error(Code::kInvalidArgument, "tool_calls, but only assistant messages may hold them");
    if (message.task && message.role != Role::kUser)
      return error(Code::kInvalidArgument, "a task, but only user messages may hold one");
    return {};
  }

  Status check_options() const {
    if (options_.effort_number) {
      if (profile_.effort_before_number.empty())
        return error(Code::kInvalidArgument,
                     "reasoning effort {}: prompt profile {} takes low, high or max",
                     *options_.effort_number, profile_.name);
      if (*options_.effort_number < 1 || *options_.effort_number > 100)
        return error(Code::kInvalidArgument, "reasoning effort {}: wanted 1 to 100",
                     *options_.effort_number);
    }
    if (options_.end == PromptEnd::kAnswer) return {};
    const ChatMessage& last = messages_.back();
    if (last.role != Role::kAssistant || !last.tool_calls.empty())
      return error(Code::kInvalidArgument,
                   "messages[{}]: to be continued it must be an assistant message without "
                   "tool_calls",
                   messages_.size() - 1);
    return {};
  }

  // ---- turns

  void group_turns() {
    size_t i = 0;
    if (messages_[0].role == Role::kSystem) head_.push_back(&messages_[i++]);
    while (!profile_.has_system_turns && i < messages_.size() && messages_[i].role == Role::kSystem)
      head_.push_back(&messages_[i++]);
    for (; i < messages_.size(); ++i) add_to_turns(messages_[i]);

    const ChatMessage* caller = nullptr;
    for (size_t t = 0; t < turns_.size(); ++t) {
      Turn& turn = turns_[t];
      if (turn.kind == Kind::kAssistant && !turn.messages[0]->tool_calls.empty())
        caller = turn.messages[0];
      if (turn.kind == Kind::kUser && caller != nullptr) sort_tool_results(*caller, &turn.messages);
      if (asks(turn)) last_asking_turn_ = static_cast<int64_t>(t);
    }
    drops_reasoning_ = options_.drop_earlier_reasoning && options_.tools.empty();
  }

  void add_to_turns(const ChatMessage& message) {
    const Kind kind = kind_of(message.role);
    const bool joins = kind == Kind::kUser && !turns_.empty() &&
                       turns_.back().kind == Kind::kUser && !turns_.back().task();
    if (joins) {
      turns_.back().messages.push_back(&message);
    } else {
      turns_.push_back({kind, {&message}});
    }
  }

  Kind kind_of(Role role) const {
    switch (role) {
      case Role::kAssistant:
        return Kind::kAssistant;
      case Role::kLatestReminder:
        return Kind::kLatestReminder;
      case Role::kSystem:
        return profile_.has_system_turns ? Kind::kSystem : Kind::kUser;
      default:
        return Kind::kUser;
    }
  }

  // An answer may follow: a user turn, or a later system turn.
  static bool asks(const Turn& turn) {
    return turn.kind == Kind::kUser || turn.kind == Kind::kSystem;
  }

  // Turns from here on keep their reasoning.
  bool keeps_reasoning(size_t turn) const {
    return options_.thinking &&
           (!drops_reasoning_ || static_cast<int64_t>(turn) >= last_asking_turn_);
  }

  // ---- writing

  Status write_head() {
    const std::string effort = options_.thinking ? effort_text() : "";
    const bool has_format = !options_.response_format.empty();
    if (!head_.empty() || !effort.empty() || !options_.tools.empty() || has_format)
      out_.trusted(profile_.system_marker);
    out_.trusted(effort);
    write_messages(head_);
    if (!options_.tools.empty()) {
      out_.trusted(kPartBreak);
      FATHOM_TRY(internal::write_tool_declarations(profile_, options_.tools, &out_));
    }
    if (has_format) {
      auto format = internal::to_python_json(options_.response_format);
      if (!format) return format.status().with_context("response_format");
      out_.trusted(kResponseFormat);
      out_.untrusted(*format);
    }
    return {};
  }

  std::string effort_text() const {
    if (options_.effort_number)
      return fmt::format("{}{}{}", profile_.effort_before_number, *options_.effort_number,
                         profile_.effort_after_number);
    switch (options_.effort) {
      case EffortLevel::kLow:
        return std::string(profile_.effort_low);
      case EffortLevel::kHigh:
        return std::string(profile_.effort_high);
      case EffortLevel::kMax:
        return std::string(profile_.effort_max);
    }
    return {};
  }

  void write_turn(size_t index) {
    const Turn& turn = turns_[index];
    switch (turn.kind) {
      case Kind::kAssistant:
        write_assistant(index);
        return;
      case Kind::kLatestReminder:
        out_.trusted(kLatestReminder);
        break;
      case Kind::kSystem:
        out_.trusted(profile_.system_marker);
        break;
      case Kind::kUser:
        out_.trusted(kUser);
        break;
    }
    write_messages(turn.messages);
    // An answer follows, or the end of the prompt where a task asks for one itself.
    const bool is_last = index + 1 == turns_.size();
    const bool is_answered = !is_last && turns_[index + 1].kind == Kind::kAssistant;
    if (turn.task() && (is_last || is_answered)) {
      write_task(*turn.task());
    } else if (asks(turn) && is_answered) {
      write_header(keeps_reasoning(index));
    }
  }

  void write_header(bool is_thinking) {
    out_.trusted(kAssistant);
    out_.trusted(is_thinking ? kThinkOpen : kThinkClose);
  }

  void write_task(Task task) {
    if (task == Task::kAction) write_header(options_.thinking);
    out_.trusted(kTaskMarkers[static_cast<size_t>(task)]);
  }

  void write_messages(std::span<const ChatMessage* const> messages) {
    for (size_t i = 0; i < messages.size(); ++i) {
      if (i > 0) out_.trusted(kPartBreak);
      const bool is_result = messages[i]->role == Role::kTool;
      if (is_result) out_.trusted("<tool_result>");
      write_content(*messages[i]);
      if (is_result) out_.trusted("</tool_result>");
    }
  }

  void write_content(const ChatMessage& message) {
    for (size_t i = 0; i < message.content.size(); ++i) {
      const ContentPart& part = message.content[i];
      if (i > 0) out_.trusted(kPartBreak);
      switch (part.kind) {
        case ContentPart::Kind::kText:
          out_.untrusted(part.text);
          break;
        case ContentPart::Kind::kPicture:
          out_.picture(profile_.image_marker, part.picture);
          break;
        case ContentPart::Kind::kUnsupported:
          out_.untrusted(fmt::format("[Unsupported {}]", part.text));
          break;
      }
    }
  }

  static bool has_content(const ChatMessage& message) {
    return std::any_of(message.content.begin(), message.content.end(),
                       [](const ContentPart& part) { return !part.text.empty(); });
  }

  void write_assistant(size_t index) {
    const ChatMessage& message = *turns_[index].messages[0];
    if (options_.end == PromptEnd::kContinue && index + 1 == turns_.size()) {
      write_open_assistant(index, message);
      return;
    }
    const bool answers_task = index > 0 && turns_[index - 1].task().has_value();
    if (keeps_reasoning(index) && !answers_task) {
      out_.untrusted(message.reasoning);
      out_.trusted(kThinkClose);
    }
    write_content(message);
    if (!message.tool_calls.empty()) {
      out_.trusted(kPartBreak);
      internal::write_tool_calls(profile_, message.tool_calls, &out_);
    }
    out_.trusted(kEos);
  }

  // The last answer, to be continued (§10): no EOS, and no </think> while it is still reasoning.
  void write_open_assistant(size_t index, const ChatMessage& message) {
    const bool answers_task = index > 0 && turns_[index - 1].task().has_value();
    const bool has_header = index > 0 && asks(turns_[index - 1]);
    if (!has_header && !answers_task) write_header(options_.thinking);
    const bool is_reasoning = options_.thinking && !answers_task && !has_content(message);
    if (options_.thinking && !answers_task) out_.untrusted(message.reasoning);
    if (options_.thinking && !answers_task && !is_reasoning) out_.trusted(kThinkClose);
    write_content(message);
    out_.set_starts_in_reasoning(is_reasoning);
  }

  // The header of the answer to come. A prompt never ends in EOS or in system text.
  void write_end() {
    if (options_.end == PromptEnd::kContinue) return;
    if (!turns_.empty() && turns_.back().task()) return;  // its marker asks already
    write_header(options_.thinking);
    out_.set_starts_in_reasoning(options_.thinking);
  }

  const PromptProfile& profile_;
  std::span<const ChatMessage> messages_;
  const ChatOptions& options_;
  std::vector<const ChatMessage*> head_;  // system messages that lead
  std::vector<Turn> turns_;               // the others
  int64_t last_asking_turn_ = -1;
  bool drops_reasoning_ = false;
  PromptWriter out_;
};

}  // namespace

Result<Role> role_from_name(std::string_view name) {
  if (name == "system" || name == "developer") return Role::kSystem;
  if (name == "user") return Role::kUser;
  if (name == "assistant") return Role::kAssistant;
  if (name == "tool" || name == "function") return Role::kTool;
  if (name == "latest_reminder") return Role::kLatestReminder;
  return error(Code::kInvalidArgument,
               "role \"{}\": wanted system, developer, user, assistant, tool or latest_reminder",
               name.substr(0, 60));
}

std::string RenderedPrompt::text() const {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

Result<RenderedPrompt> render_chat(const PromptProfile& profile,
                                   std::span<const ChatMessage> messages,
                                   const ChatOptions& options) {
  return ChatRenderer(profile, messages, options).run();
}

Result<EncodedPrompt> encode_prompt(const Tokenizer& tokenizer, const MarkerIds& markers,
                                    const RenderedPrompt& prompt) {
  EncodedPrompt encoded;
  FATHOM_ASSIGN(encoded.ids, tokenizer.encode(prompt.segments));
  for (size_t i = 0; i < encoded.ids.size(); ++i)
    if (encoded.ids[i] == markers.image)
      encoded.picture_positions.push_back(static_cast<int64_t>(i));
  FATHOM_CHECK(encoded.picture_positions.size() == prompt.pictures.size(),
               "{} placeholders for {} pictures: markers of another tokenizer or profile?",
               encoded.picture_positions.size(), prompt.pictures.size());
  return encoded;
}

}  // namespace fathom::text
