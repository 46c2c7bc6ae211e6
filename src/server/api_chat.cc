// POST /v1/chat/completions: from a request's bytes to a queued answer. Runs on a worker thread;
// everything that can be refused is refused here, before the first byte of an answer.
#include <ctime>
#include <optional>
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
AnswerRequest answer_request(const ChatRequest& chat, const ChatPrompt& prompt,
                             const ApiOptions& options) {
  AnswerRequest request;
  request.prompt = prompt.encoded.ids;
  request.picture_positions = prompt.encoded.picture_positions;
  request.starts_in_reasoning = prompt.rendered.starts_in_reasoning;
  request.answer_tokens_max = answer_tokens_max(chat, options);
  request.answer_tokens_min = chat.answer_tokens_min;
  request.ignores_end_of_turn = chat.ignores_end_of_turn;
  request.stop_tokens = chat.stop_tokens;
  request.stop_strings = chat.stop_strings;
  request.includes_stop_string = chat.includes_stop_string;
  request.sampling = chat.sampling;
  // A seed drawn here stays below 2^63, so that every client can send it back.
  request.sampling.seed = chat.seed ? *chat.seed : random_u64() >> 1;
  request.drafts = chat.drafts;
  request.wants_logprobs = chat.wants_logprobs;
  request.top_logprobs = chat.top_logprobs;
  request.may_reuse_prefix = chat.may_reuse_prefix;
  return request;
}

// The pictures in the order of the prompt; the first that cannot be used is the error.
std::optional<ApiError> decode_pictures(const ChatRequest& chat, const ChatPrompt& prompt,
                                        const LanguageModel& model, AnswerRequest* request) {
  for (int index : prompt.rendered.pictures) {
    const RequestPicture& picture = chat.pictures[static_cast<size_t>(index)];
    auto input = decode_picture_input(picture.bytes, model);
    if (!input) return picture_error(input.status(), picture.path);
    request->pictures.push_back(std::move(*input));
  }
  return std::nullopt;
}

ChatSessionOptions session_options(const ChatRequest& chat, bool starts_in_reasoning) {
  ChatSessionOptions options;
  options.stream = chat.stream;
  options.include_usage = chat.include_usage;
  options.return_progress = chat.return_progress;
  options.shows_reasoning = !chat.excludes_reasoning;
  options.reasoning_in_content = chat.reasoning_in_content;
  options.has_reasoning =
      starts_in_reasoning && !chat.excludes_reasoning && !chat.reasoning_in_content;
  return options;
}

}  // namespace

ChatWriter Api::writer_for(const ChatRequest& chat) const {
  return {{.id = "chatcmpl-" + random_text(28),
           .model = chat.model.empty() ? options_.model_name : chat.model,
           .created = std::time(nullptr),
           .fingerprint = fingerprint_},
          {.reasoning_field = options_.reasoning_field,
           .include_usage = chat.include_usage,
           .timings_per_token = chat.timings_per_token,
           .wants_logprobs = chat.wants_logprobs}};
}

void Api::chat(const HttpRequest& http, const std::shared_ptr<Responder>& responder) {
  const auto refuse = [&](const ApiError& error) { responder->send(error_response(error)); };
  if (const auto problem = engine_problem()) return refuse(*problem);
  Engine& engine = *engine_.load();
  const ChatRequestOrError parsed = parse_chat_request(http.body, rules_of(engine));
  if (parsed.error) return refuse(*parsed.error);
  const ChatRequest& chat = parsed.request;
  if (options_.is_strict_about_model_names && !chat.model.empty() &&
      chat.model != options_.model_name)
    return refuse(
        {404, "model_not_found", "the model served here is " + options_.model_name, "model"});

  const LoadedModel& loaded = engine.loaded();
  const auto prompt = make_chat_prompt(chat, loaded);
  if (!prompt) return refuse(prompt_error(prompt.status()));
  const auto too_long = [&](int64_t tokens) {
    return refuse(context_length_exceeded(tokens, engine.context_tokens(), "messages"));
  };
  if (const auto tokens = static_cast<int64_t>(prompt->encoded.ids.size());
      tokens >= engine.context_tokens())
    return too_long(tokens);

  // A place first: pictures are decoded only for requests that will be answered.
  auto place = engine.reserve();
  if (!place) return refuse(admission_error(place.status(), engine));
  AnswerRequest request = answer_request(chat, *prompt, options_);
  request.id = http.request_id;
  if (const auto error = decode_pictures(chat, *prompt, *loaded.model, &request))
    return refuse(*error);
  if (const int64_t tokens = expanded_prompt_tokens(request); tokens >= engine.context_tokens())
    return too_long(tokens);

  const auto session = std::make_shared<ChatSession>(
      session_options(chat, request.starts_in_reasoning), writer_for(chat), responder);
  session->start(engine, std::move(*place), std::move(request));
}

}  // namespace fathom::server
