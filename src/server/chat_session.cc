#include "server/chat_session.h"

#include <utility>

#include "base/log.h"

namespace fathom::server {

ChatSession::ChatSession(ChatSessionOptions options, ChatWriter writer,
                         std::shared_ptr<Responder> responder)
    : options_(options), writer_(std::move(writer)), responder_(std::move(responder)) {}

void ChatSession::start(Engine& engine, Engine::Place place, AnswerRequest request) {
  // The first chunk goes out before the engine can answer, so that it is the first.
  if (options_.stream) {
    responder_->begin_stream();
    responder_->write(writer_.role_chunk());
  }
  const auto job = engine.submit(std::move(place), std::move(request), shared_from_this());
  responder_->on_gone([&engine, job] { engine.cancel(job); });
}

void ChatSession::on_prefill(int64_t done_tokens, const AnswerUsage& so_far) {
  if (!options_.stream || !options_.return_progress) return;
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started_)
          .count();
  responder_->write(writer_.progress_chunk(done_tokens, so_far, ms));
}

// Reasoning where the client wants it.
AnswerDelta ChatSession::shaped(AnswerDelta delta) {
  if (!options_.shows_reasoning) delta.reasoning.clear();
  if (!options_.reasoning_in_content) return delta;
  std::string content;
  if (!delta.reasoning.empty()) {
    if (!std::exchange(is_in_think_text_, true)) content += "<think>";
    content += delta.reasoning;
  }
  if (!delta.content.empty() && std::exchange(is_in_think_text_, false)) content += "</think>";
  delta.content = content + delta.content;
  delta.reasoning.clear();
  return delta;
}

void ChatSession::on_delta(AnswerDelta delta, const AnswerSummary& so_far) {
  delta = shaped(std::move(delta));
  if (delta.is_empty()) return;
  if (options_.stream) return responder_->write(writer_.delta_chunk(delta, so_far));
  whole_.reasoning += delta.reasoning;
  whole_.content += delta.content;
  for (TokenReport& report : delta.logprobs) whole_.logprobs.push_back(std::move(report));
}

void ChatSession::on_done(const AnswerSummary& summary) {
  responder_->on_gone(nullptr);
  if (!options_.stream) {
    HttpResponse response;
    response.body = writer_.body(whole_, options_.has_reasoning, summary);
    return responder_->send(std::move(response));
  }
  std::string end = writer_.finish_chunk(summary);
  if (options_.include_usage) end += writer_.usage_chunk(summary.usage);
  end += kDoneEvent;
  responder_->write(std::move(end));
  responder_->end_stream();
}

void ChatSession::on_error(const Status& status) {
  responder_->on_gone(nullptr);
  const ApiError error = engine_error(status);
  if (!options_.stream) return responder_->send(error_response(error));
  responder_->write(ChatWriter::error_event(error));
  responder_->end_stream();
}

ApiError engine_error(const Status& status) {
  // Cancelled, and somebody is still there to hear it: the server is going down.
  if (status.code() == Code::kCancelled)
    return api_error(error(Code::kUnavailable, "the server is shutting down"));
  return api_error(status);
}

}  // namespace fathom::server
