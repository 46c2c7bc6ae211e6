// One chat request between the engine and the client: deltas become chunks or one body, a client
// that leaves cancels the answer.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "engine/engine.h"
#include "server/chat_request.h"
#include "server/chat_response.h"
#include "server/http_message.h"

namespace fathom::server {

struct ChatSessionOptions {
  bool stream = false;
  bool include_usage = false;
  bool return_progress = false;
  bool shows_reasoning = true;        // else its text is dropped
  bool reasoning_in_content = false;  // <think>...</think>
  bool has_reasoning = false;         // the message has the field, even if it is empty
};

class ChatSession : public AnswerSink, public std::enable_shared_from_this<ChatSession> {
 public:
  ChatSession(ChatSessionOptions options, ChatWriter writer, std::shared_ptr<Responder> responder);

  // Begins the stream, if it is one, and hands the request to the engine.
  void start(Engine& engine, Engine::Place place, AnswerRequest request);

  void on_prefill(int64_t done_tokens, const AnswerUsage& so_far) override;
  void on_delta(AnswerDelta delta, const AnswerSummary& so_far) override;
  void on_done(const AnswerSummary& summary) override;
  void on_error(const Status& status) override;

 private:
  AnswerDelta shaped(AnswerDelta delta);

  const ChatSessionOptions options_;
  const ChatWriter writer_;
  const std::shared_ptr<Responder> responder_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  // Touched by one engine thread at a time.
  AnswerDelta whole_;              // not streamed: everything so far
  bool is_in_think_text_ = false;  // <think> was written into content, </think> not yet
};

// The error of an engine as this API tells it: `status` with the code it has here.
ApiError engine_error(const Status& status);

}  // namespace fathom::server
