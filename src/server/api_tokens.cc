// POST /tokenize, /detokenize and /apply-template (HTTP API §9.5): what the model is given, made
// visible, so that a live server can be tested against golden encodings.
#include <utility>

#include "server/api.h"
#include "server/json_fields.h"
#include "server/request_json.h"

namespace fathom::server {

namespace {

HttpResponse json_response(const Json& json) {
  HttpResponse response;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

// A token's bytes as a string, or as an array of numbers when they are no whole characters.
Json piece_json(std::string_view bytes) {
  if (text::is_valid_utf8(bytes)) return bytes;
  Json list = Json::array();
  for (char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

}  // namespace

HttpResponse Api::tokenize(const HttpRequest& request) const {
  if (const auto problem = engine_problem()) return error_response(*problem);
  const Engine& engine = *engine_.load();
  const LoadedModel& loaded = engine.loaded();
  RequestJson json = parse_request_json(request.body, options_.body_bytes_max);
  if (json.error) return error_response(*json.error);
  std::optional<ApiError> error;
  JsonFields fields(json.object, "", &error);
  auto text = fields.string("content");
  if (!text) text = fields.string("prompt");
  const bool adds_special = fields.boolean("add_special").value_or(false) ||
                            fields.boolean("add_special_tokens").value_or(false);
  const bool parses_special = fields.boolean("parse_special").value_or(true);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false) ||
                           fields.boolean("return_token_strs").value_or(false);
  if (error) return error_response(*error);

  std::vector<TokenId> ids;
  if (json.object.contains("messages")) {
    const auto chat = parse_chat_request(request.body, rules_of(engine));
    if (chat.error) return error_response(*chat.error);
    const auto rendered =
        text::render_chat(*loaded.profile, chat.request.messages, chat.request.options);
    if (!rendered) return error_response(api_error(rendered.status()));
    const auto prompt = text::encode_prompt(*loaded.tokenizer, loaded.markers, *rendered);
    if (!prompt) return error_response(api_error(prompt.status()));
    ids = prompt->ids;
  } else if (text) {
    auto encoded = loaded.tokenizer->encode(
        *text, parses_special ? text::AddedTokens::kMatch : text::AddedTokens::kIgnore);
    if (!encoded) return error_response(api_error(encoded.status()));
    ids = std::move(*encoded);
    if (adds_special) ids.insert(ids.begin(), loaded.markers.bos);
  } else {
    return error_response({400, "missing_required_parameter",
                           "content: is missing (or prompt, or messages)", "content"});
  }
  Json tokens = Json::array();
  for (TokenId id : ids)
    tokens.push_back(
        with_pieces ? Json{{"id", id}, {"piece", piece_json(loaded.tokenizer->token_bytes(id))}}
                    : Json(id));
  return json_response({{"tokens", std::move(tokens)},
                        {"count", ids.size()},
                        {"max_model_len", engine.context_tokens()}});
}

HttpResponse Api::detokenize(const HttpRequest& request) const {
  if (const auto problem = engine_problem()) return error_response(*problem);
  const LoadedModel& loaded = engine_.load()->loaded();
  RequestJson json = parse_request_json(request.body, options_.body_bytes_max);
  if (json.error) return error_response(*json.error);
  std::optional<ApiError> error;
  JsonFields fields(json.object, "", &error);
  const Json* tokens = fields.array("tokens");
  if (error) return error_response(*error);
  if (!tokens)
    return error_response({400, "missing_required_parameter", "tokens: is missing", "tokens"});
  std::vector<TokenId> ids;
  for (size_t i = 0; i < tokens->size(); ++i) {
    const auto id = whole_number((*tokens)[i]);
    if (!id || *id < 0 || *id >= loaded.tokenizer->vocab_count())
      return error_response(
          invalid_value(fmt::format("tokens[{}]", i),
                        fmt::format("tokens[{}]: wanted 0 to {}, found {}", i,
                                    loaded.tokenizer->vocab_count() - 1, shown((*tokens)[i]))));
    ids.push_back(static_cast<TokenId>(*id));
  }
  const std::string text = loaded.tokenizer->decode(ids);
  return json_response({{"content", text}, {"prompt", text}});
}

HttpResponse Api::apply_template(const HttpRequest& request) const {
  if (const auto problem = engine_problem()) return error_response(*problem);
  const Engine& engine = *engine_.load();
  const LoadedModel& loaded = engine.loaded();
  const auto chat = parse_chat_request(request.body, rules_of(engine));
  if (chat.error) return error_response(*chat.error);
  const auto rendered =
      text::render_chat(*loaded.profile, chat.request.messages, chat.request.options);
  if (!rendered) return error_response(api_error(rendered.status()));
  const auto prompt = text::encode_prompt(*loaded.tokenizer, loaded.markers, *rendered);
  if (!prompt) return error_response(api_error(prompt.status()));
  return json_response({{"prompt", rendered->text()}, {"token_ids", prompt->ids}});
}

}  // namespace fathom::server
