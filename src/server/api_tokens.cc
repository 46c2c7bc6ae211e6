// POST /tokenize, /detokenize and /apply-template (HTTP API §9.5): what the model is given, made
// visible, so that a live server can be tested against golden encodings.
#include <utility>

#include "server/api.h"
#include "server/chat_prompt.h"
#include "server/json_fields.h"
#include "server/json_output.h"
#include "server/request_json.h"

namespace fathom::server {

namespace {

constexpr int64_t kTokenizedBytesMax = 16 << 20;  // of plain text: several full contexts

// A token's bytes as a string, or as an array of numbers when they are no whole characters.
Json piece_json(std::string_view bytes) {
  if (text::is_valid_utf8(bytes)) return bytes;
  Json list = Json::array();
  for (char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

// Text and not Json: millions of objects would take ten times the room.
std::string tokens_json(const std::vector<TokenId>& ids, bool with_pieces,
                        const text::Tokenizer& tokenizer) {
  std::string list = "[";
  for (TokenId id : ids) {
    if (list.size() > 1) list += ',';
    list += with_pieces ? fmt::format(R"({{"id":{},"piece":{}}})", id,
                                      json_text(piece_json(tokenizer.token_bytes(id))))
                        : std::to_string(id);
  }
  return list + "]";
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
    auto prompt = make_chat_prompt(chat.request, loaded);
    if (!prompt) return error_response(prompt_error(prompt.status()));
    ids = std::move(prompt->encoded.ids);
  } else if (text) {
    if (static_cast<int64_t>(text->size()) > kTokenizedBytesMax)
      return error_response(
          invalid_value("content", fmt::format("content: {} bytes, at most {} are taken",
                                               text->size(), kTokenizedBytesMax)));
    auto encoded = loaded.tokenizer->encode(
        *text, parses_special ? text::AddedTokens::kMatch : text::AddedTokens::kIgnore);
    if (!encoded) return error_response(api_error(encoded.status()));
    ids = std::move(*encoded);
    if (adds_special) ids.insert(ids.begin(), loaded.markers.bos);
  } else {
    return error_response({400, "missing_required_parameter",
                           "content: is missing (or prompt, or messages)", "content"});
  }
  HttpResponse response;
  response.body = fmt::format(R"({{"tokens":{},"count":{},"max_model_len":{}}})",
                              tokens_json(ids, with_pieces, *loaded.tokenizer), ids.size(),
                              engine.context_tokens());
  return response;
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
  const auto prompt = make_chat_prompt(chat.request, loaded);
  if (!prompt) return error_response(prompt_error(prompt.status()));
  return json_response({{"prompt", prompt->rendered.text()}, {"token_ids", prompt->encoded.ids}});
}

}  // namespace fathom::server
