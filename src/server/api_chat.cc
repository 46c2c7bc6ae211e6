// POST /v1/chat/completions: from a request's bytes to a queued answer. Runs on a worker thread;
// everything that can be refused is refused here, before the first byte of an answer.
#include <chrono>
#include <utility>

#include "server/api.h"
#include "server/chat_prompt.h"
#include "server/chat_session.h"
#include "server/request_id.h"

namespace fathom::server {

namespace {

constexpr int64_t kThinkingTokensDefault = 65536;
constexpr int64_t kAnswerTokensDefault = 8192;
constexpr int64_t kAnswerTokensMax = 393216;  // of the model family

ApiError admission_error(const Status& status, const Engine& engine) {
  if (status.code() != Code::kResourceExhausted) return api_error(status);
  ApiError error{429, "queue_full", status.message(), {}};
  error.retry_after_s = engine.retry_after_s();
  return error;
}

int64_t answer_tokens_max(const ChatRequest& chat, const ApiOptions& options) {
  const int64_t standard = options.default_max_tokens.value_or(
      chat.options.thinking ? kThinkingTokensDefault : kAnswerTokensDefault);
  return std::min(chat.answer_tokens_max.value_or(standard), kAnswerTokensMax);
}

// Everything but the id and the pictures.
AnswerRequest answer_request(ChatRequest& chat, const ChatPrompt& prompt,
                             const ApiOptions& options) {
  AnswerRequest request;
  request.prompt = prompt.encoded.ids;
  request.picture_positions = prompt.encoded.picture_positions;
  request.starts_in_reasoning = prompt.rendered.starts_in_reasoning;
  request.answer_tokens_max = answer_tokens_max(chat, options);
  request.answer_tokens_min = chat.answer_tokens_min;
  request.ignores_end_of_turn = chat.ignores_end_of_turn;
  request.stop_tokens = chat.stop_tokens;
  request.stop_strings = std::move(chat.stop_strings);
  request.includes_stop_string = chat.includes_stop_string;
  request.sampling = std::move(chat.sampling);
  // A seed drawn here stays below 2^63, so that every client can send it back.
  request.sampling.seed = chat.seed ? *chat.seed : random_u64() >> 1;
  request.drafts = chat.drafts;
  request.wants_logprobs = chat.wants_logprobs;
  request.top_logprobs = chat.top_logprobs;
  request.may_reuse_prefix = chat.may_reuse_prefix;
  return request;
}

}  // namespace

void Api::chat(const HttpRequest& http, const std::shared_ptr<Responder>& responder) {
  const auto refuse = [&](const ApiError& error) { responder->send(error_response(error)); };
  if (const auto problem = engine_problem()) return refuse(*problem);
  Engine& engine = *engine_.load();
  ChatRequestOrError parsed = parse_chat_request(http.body, rules_of(engine));
  if (parsed.error) return refuse(*parsed.error);
  ChatRequest& chat = parsed.request;
  if (options_.is_strict_about_model_names && !chat.model.empty() &&
      chat.model != options_.model_name)
    return refuse(
        {404, "model_not_found", "the model served here is " + options_.model_name, "model"});

  const LoadedModel& loaded = engine.loaded();
  const auto prompt = make_chat_prompt(chat, loaded);
  if (!prompt) return refuse(prompt_error(prompt.status()));
  if (const auto tokens = static_cast<int64_t>(prompt->encoded.ids.size());
      tokens >= engine.context_tokens())
    return refuse(context_length_exceeded(tokens, engine.context_tokens(), "messages"));

  // A place first: pictures are decoded only for requests that will be answered.
  auto place = engine.reserve();
  if (!place) return refuse(admission_error(place.status(), engine));
  AnswerRequest request = answer_request(chat, *prompt, options_);
  request.id = http.request_id;
  for (int index : prompt->rendered.pictures) {
    const RequestPicture& picture = chat.pictures[static_cast<size_t>(index)];
    auto input = decode_picture_input(picture.bytes, *loaded.model);
    if (!input) return refuse(picture_error(input.status(), picture.path));
    request.pictures.push_back(std::move(*input));
  }
  const int64_t prompt_tokens = expanded_prompt_tokens(request);
  if (prompt_tokens >= engine.context_tokens())
    return refuse(context_length_exceeded(prompt_tokens, engine.context_tokens(), "messages"));

  const auto created = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  ChatWriter writer(
      {"chatcmpl-" + random_text(28), chat.model.empty() ? options_.model_name : chat.model,
       created.count(), fingerprint_},
      {.reasoning_field = options_.reasoning_field,
       .include_usage = chat.include_usage,
       .timings_per_token = chat.timings_per_token,
       .wants_logprobs = chat.wants_logprobs});
  const bool shows_reasoning = !chat.excludes_reasoning;
  const ChatSessionOptions session_options{
      chat.stream,
      chat.include_usage,
      chat.return_progress,
      shows_reasoning,
      chat.reasoning_in_content,
      request.starts_in_reasoning && shows_reasoning && !chat.reasoning_in_content};
  std::make_shared<ChatSession>(session_options, std::move(writer), responder)
      ->start(engine, std::move(*place), std::move(request));
}

}  // namespace fathom::server
