// A typed conversation to the prompt of a profile (prompt-encoding spec §5-§7, §9-§11): first text
// in trusted and untrusted stretches, then token ids with the places of pictures. Parsing requests
// is the server's; pixels are nobody's here: a picture is a number that the caller gave.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/prompt_profile.h"
#include "text/tokenizer.h"

namespace fathom::text {

enum class Role { kSystem, kUser, kAssistant, kTool, kLatestReminder };

// Names of the HTTP APIs: "developer" is kSystem, "function" is kTool. kInvalidArgument otherwise.
Result<Role> role_from_name(std::string_view name);

struct ContentPart {
  enum class Kind {
    kText,         // `text`
    kPicture,      // `picture`; in user, system and tool messages
    kUnsupported,  // `text` is the type's name; tool results only, written as [Unsupported TYPE]
  };
  Kind kind = Kind::kText;
  std::string text = {};
  int picture = -1;  // the caller's index; comes back in EncodedPrompt in prompt order

  static ContentPart of_text(std::string text) { return {Kind::kText, std::move(text), -1}; }
  static ContentPart of_picture(int index) { return {Kind::kPicture, {}, index}; }
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text; an object, or an object's text inside a JSON string
};

// Quick-instruction tasks of a user message (§11), in the order of kTaskMarkers.
enum class Task { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };

struct ChatMessage {
  Role role = Role::kUser;
  std::vector<ContentPart> content = {};  // empty: the empty text
  std::string reasoning = {};             // assistant: reasoning_content
  std::vector<ToolCall> tool_calls = {};  // assistant
  std::string tool_call_id = {};          // tool
  std::optional<Task> task = {};          // user
};

// A function offered to the model. Texts keep the client's order of keys, which the model sees.
struct ToolDefinition {
  std::string function =
      {};  // JSON text of {"name", "description", "parameters"}; "strict" is dropped
  std::string namespace_name = {};         // V4.1: printed before the name as "ns::"; empty: none
  std::string namespace_description = {};  // printed before the description
};

enum class PromptEnd {
  kAnswer,    // the assistant header: the model begins a new answer
  kContinue,  // the last message is the assistant's and is left open (§10)
};

struct ChatOptions {
  bool thinking = true;
  EffortLevel effort = EffortLevel::kHigh;
  std::optional<int> effort_number =
      {};  // 1..100, instead of `effort`; profiles that take a number
  // Reasoning of answers before the last user turn leaves the prompt. Tools force this off.
  bool drop_earlier_reasoning = true;
  std::vector<ToolDefinition> tools = {};
  std::string response_format = {};  // JSON text; empty: none
  PromptEnd end = PromptEnd::kAnswer;
};

struct RenderedPrompt {
  std::vector<Segment> segments;
  std::vector<int> pictures;         // ContentPart::picture in prompt order
  bool starts_in_reasoning = false;  // the model's first token is reasoning

  std::string text() const;  // what /apply-template answers
};

// kInvalidArgument names the message (from 0) and what is wrong with it.
Result<RenderedPrompt> render_chat(const PromptProfile& profile,
                                   std::span<const ChatMessage> messages,
                                   const ChatOptions& options);

struct EncodedPrompt {
  std::vector<TokenId> ids;
  // Index in `ids` of each picture's one placeholder, in the order of RenderedPrompt::pictures. The
  // engine puts the picture's span there.
  std::vector<int64_t> picture_positions;
};

// `markers` are those of the tokenizer and the profile that rendered the prompt.
Result<EncodedPrompt> encode_prompt(const Tokenizer& tokenizer, const MarkerIds& markers,
                                    const RenderedPrompt& prompt);

}  // namespace fathom::text
