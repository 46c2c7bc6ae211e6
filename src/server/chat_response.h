// Answers as the JSON of chat.completion and chat.completion.chunk (HTTP API §5.3-§5.6).
#pragma once

#include <cstdint>
#include <string>

#include "engine/answer.h"
#include "server/api_error.h"

namespace fathom::server {

// What is the same in every chunk of one answer.
struct ChatIdentity {
  std::string id;       // chatcmpl-...
  std::string model;    // as the client named it, else ours
  int64_t created = 0;  // seconds since 1970
  std::string fingerprint;
};

enum class ReasoningField { kReasoningContent, kReasoning, kBoth };

struct ChatFormat {
  ReasoningField reasoning_field = ReasoningField::kReasoningContent;
  bool include_usage = false;      // every chunk has "usage", null in all but the last
  bool timings_per_token = false;  // in every chunk of text
  bool wants_logprobs = false;
};

class ChatWriter {
 public:
  ChatWriter(ChatIdentity identity, ChatFormat format);

  // Whole events: "data: {...}\n\n".
  std::string role_chunk() const;
  std::string delta_chunk(const AnswerDelta& delta, const AnswerSummary& so_far) const;
  std::string progress_chunk(int64_t done_tokens, const AnswerUsage& usage, double ms) const;
  std::string finish_chunk(const AnswerSummary& summary) const;
  std::string usage_chunk(const AnswerUsage& usage) const;
  static std::string error_event(const ApiError& error);

  // The body of an answer that is not streamed.
  std::string body(const AnswerDelta& whole, bool has_reasoning,
                   const AnswerSummary& summary) const;

 private:
  std::string chunk(const std::string& choices, const std::string& more = {}) const;

  const ChatFormat format_;
  std::string prefix_;       // {"id":...,"model":"...", of a chunk
  std::string body_prefix_;  // and of a body
};

inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

}  // namespace fathom::server
