#include "server/api.h"

#include <ctime>
#include <utility>

#include "base/json.h"
#include "base/sha256.h"
#include "server/json_output.h"
#include "server/web_files.h"

namespace fathom::server {

namespace {

// The page runs its own scripts and styles only and speaks to nobody but this server, so that
// nothing a model writes can make it do otherwise.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string iso_time(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

Api::Api(ApiOptions options, Access access)
    : options_(std::move(options)),
      gate_(std::move(access)),
      started_s_(std::time(nullptr)),
      fingerprint_("fp_" + sha256_hex(options_.build_id + options_.model_name).substr(0, 12)),
      workers_(options_.worker_count) {}

void Api::begin_drain() {
  is_draining_ = true;
  if (Engine* engine = engine_) engine->stop_admission();
}

HeadVerdict Api::on_head(const HttpRequest& head, bool is_reserved) {
  return gate_.check(head, route_of(head), is_reserved);
}

void Api::on_request(HttpRequest request, std::shared_ptr<Responder> responder) {
  const Route route = route_of(request);
  // The cheap ones are answered here, whatever the engine and the workers are busy with.
  if (route.endpoint == Endpoint::kHealth) return responder->send(health());
  if (route.endpoint == Endpoint::kModels) return responder->send(models(route.rest));
  if (route.endpoint == Endpoint::kProps) return responder->send(props());
  if (route.endpoint == Endpoint::kPage) return responder->send(page(route.rest));
  workers_.post([this, endpoint = route.endpoint, request = std::move(request), responder] {
    switch (endpoint) {
      case Endpoint::kChatCompletions:
        return chat(request, responder);
      case Endpoint::kTokenize:
        return responder->send(tokenize(request));
      case Endpoint::kDetokenize:
        return responder->send(detokenize(request));
      case Endpoint::kApplyTemplate:
        return responder->send(apply_template(request));
      default:
        return responder->send(error_response({404, "unknown_url", "nothing here", {}}));
    }
  });
}

// Why no request can be answered now.
std::optional<ApiError> Api::engine_problem() const {
  ApiError error{503, "model_loading", "Loading model", {}};
  error.retry_after_s = 2;
  const Engine* engine = engine_;
  if (is_draining_) {
    error.code = "shutting_down";
    error.message = "the server is shutting down";
  } else if (engine && engine->status().is_stalled) {
    error.code = "engine_stalled";
    error.message = "the engine has not moved for long";
  } else if (engine) {
    return std::nullopt;
  }
  return error;
}

HttpResponse Api::health() const {
  if (const auto problem = engine_problem()) return error_response(*problem);
  return json_response({{"status", "ok"}});
}

HttpResponse Api::page(const std::string& name) const {
  const WebFile* file = find_web_file(name);
  if (!file) return error_response({404, "unknown_url", "there is nothing at /" + name, {}});
  HttpResponse response;
  response.content_type = std::string(file->content_type);
  response.body = std::string(file->bytes);
  response.headers = {{"Content-Security-Policy", kPagePolicy},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}};
  return response;
}

HttpResponse Api::models(const std::string& id) const {
  const std::string& name = options_.model_name;
  if (!id.empty() && id != name)
    return error_response({404, "model_not_found", "the model served here is " + name, "model"});
  Json model = {{"id", name},
                {"object", "model"},
                {"type", "model"},
                {"created", started_s_},
                {"created_at", iso_time(started_s_)},
                {"display_name", name},
                {"owned_by", "deepseek-ai"},
                {"aliases", Json::array()}};
  if (const Engine* engine = engine_) {
    const ModelInfo& info = engine->loaded().model->info();
    const int64_t context = engine->context_tokens();
    Json inputs = {"text"};
    if (info.has_vision) inputs.push_back("image");
    model["context_length"] = context;
    model["max_model_len"] = context;
    model["max_output_tokens"] = context - 1;
    model["top_provider"] = {{"context_length", context}, {"max_completion_tokens", context - 1}};
    model["architecture"] = {{"input_modalities", inputs}, {"output_modalities", {"text"}}};
    model["supported_parameters"] = {"max_tokens",
                                     "temperature",
                                     "top_p",
                                     "top_k",
                                     "min_p",
                                     "seed",
                                     "stop",
                                     "frequency_penalty",
                                     "presence_penalty",
                                     "repetition_penalty",
                                     "logit_bias",
                                     "logprobs",
                                     "top_logprobs",
                                     "reasoning",
                                     "include_reasoning"};
    model["meta"] = {{"vocab_type", 2},
                     {"n_vocab", info.vocab_count},
                     {"n_ctx_train", info.context_tokens_max},
                     {"n_ctx", context},
                     {"n_embd", info.hidden_size},
                     {"n_params", engine->loaded().parameter_count},
                     {"size", engine->loaded().payload_bytes}};
  }
  if (!id.empty()) return json_response(model);
  return json_response({{"object", "list"},
                        {"data", {model}},
                        {"has_more", false},
                        {"first_id", name},
                        {"last_id", name}});
}

HttpResponse Api::props() const {
  if (const auto problem = engine_problem()) return error_response(*problem);
  const Engine& engine = *engine_.load();
  const LoadedModel& loaded = engine.loaded();
  const ModelInfo& info = loaded.model->info();
  Json places = Json::array();
  for (const DraftTally& tally : engine.draft_tallies())
    places.push_back({{"draft_n", tally.judged}, {"draft_n_accepted", tally.accepted}});
  return json_response(
      {{"default_generation_settings",
        {{"n_ctx", engine.context_tokens()},
         {"params",
          {{"temperature", options_.default_temperature}, {"top_p", options_.default_top_p}}}}},
       {"total_slots", 1},
       {"model_alias", options_.model_name},
       {"model_path", loaded.name},
       {"modalities", {{"vision", info.has_vision}, {"audio", false}}},
       {"bos_token", loaded.tokenizer->token_bytes(info.bos_token)},
       {"eos_token", loaded.tokenizer->token_bytes(info.eos_token)},
       {"build_info", options_.build_id},
       {"is_sleeping", false},
       {"profile", loaded.profile->name},
       {"speculation", {{"draft_tokens_max", info.draft_tokens_max}, {"by_position", places}}}});
}

ChatRequestRules Api::rules_of(const Engine& engine) const {
  const ModelInfo& info = engine.loaded().model->info();
  return {.body_bytes_max = options_.body_bytes_max,
          .vocab_count = engine.loaded().tokenizer->vocab_count(),
          .has_vision = info.has_vision,
          .thinks_by_default = options_.thinks_by_default,
          .default_temperature = options_.default_temperature,
          .default_top_p = options_.default_top_p,
          .default_drafts = options_.default_drafts};
}

}  // namespace fathom::server
