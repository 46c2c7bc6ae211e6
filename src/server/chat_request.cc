#include "server/chat_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "server/json_fields.h"
#include "server/message_parser.h"
#include "server/request_json.h"

namespace fathom::server {

namespace {

constexpr int64_t kStopStringsMax = 16;
constexpr int64_t kStopBytesMax = 1024;
constexpr int64_t kStopTokensMax = 1024;
constexpr int64_t kLogitBiasMax = 1024;
constexpr int kTopLogprobsMax = 20;

// Refused because answering as if they were absent would not be what the client asked for. Neutral
// values (null, false, empty) pass.
constexpr std::array<std::string_view, 28> kRefused = {"tools",
                                                       "functions",
                                                       "function_call",
                                                       "json_schema",
                                                       "grammar",
                                                       "guided_json",
                                                       "guided_choice",
                                                       "guided_regex",
                                                       "guided_grammar",
                                                       "structured_outputs",
                                                       "best_of",
                                                       "use_beam_search",
                                                       "length_penalty",
                                                       "audio",
                                                       "web_search_options",
                                                       "echo",
                                                       "prompt_logprobs",
                                                       "logprob_token_ids",
                                                       "lora",
                                                       "documents",
                                                       "chat_template",
                                                       "logits_processors",
                                                       "vllm_xargs",
                                                       "kv_transfer_params",
                                                       "mm_processor_kwargs",
                                                       "system_prompt",
                                                       "mirostat",
                                                       "typical_p"};

bool is_neutral(std::string_view name, const Json& value) {
  if (value.is_null() || value == false || value == 0) return true;
  if ((value.is_array() || value.is_object() || value.is_string()) && value.empty()) return true;
  const bool is_neutral_at_1 = name == "best_of" || name == "typical_p" || name == "length_penalty";
  return is_neutral_at_1 && value.is_number() && value == 1;
}

class ChatRequestParser {
 public:
  ChatRequestParser(const Json& body, const ChatRequestRules& rules)
      : body_(body), rules_(rules), fields_(body, "", &error_) {}

  ChatRequestOrError run() {
    request_.model = fields_.string("model").value_or("");
    refuse_unsupported();
    parse_message_list();
    parse_thinking();
    parse_end();
    parse_stream();
    parse_limits();
    parse_stops();
    parse_sampling();
    parse_logit_bias();
    parse_logprobs();
    parse_speculation();
    return {std::move(request_), std::move(error_)};
  }

 private:
  void fail(ApiError error) { fields_.fail(std::move(error)); }

  void refuse_unsupported() {
    for (std::string_view name : kRefused) {
      const std::string key(name);
      const auto it = body_.find(key);
      if (it != body_.end() && !is_neutral(name, *it))
        fail(unsupported_parameter(key, key + ": is not supported by this server yet"));
    }
    const Json* choice = fields_.find("tool_choice");
    if (choice && *choice != "none" && *choice != "auto")
      fail(unsupported_parameter("tool_choice", "tool_choice: there are no tools to choose from"));
    if (const Json* format = fields_.object("response_format")) {
      JsonFields inner(*format, "response_format", &error_);
      const auto type = inner.string("type");
      if (!type || *type != "text")
        fail(unsupported_parameter("response_format",
                                   "response_format: only {\"type\": \"text\"} is supported yet"));
    }
    const auto n = fields_.integer("n", 1, INT64_MAX);
    if (n && *n != 1)
      fail(unsupported_value("n", fmt::format("n: {} choices; this server gives 1", *n)));
    const Json* modalities = fields_.array("modalities");
    for (size_t i = 0; modalities && i < modalities->size(); ++i)
      if ((*modalities)[i] != "text")
        fail(unsupported_value("modalities", "modalities: only text is answered"));
  }

  void parse_message_list() {
    const Json* messages = fields_.array("messages");
    if (error_) return;
    if (!messages || messages->empty())
      return fail({400, "missing_required_parameter", "messages: is missing or empty", "messages"});
    parse_messages(*messages, rules_.has_vision, {}, &request_, &error_);
  }

  // --- thinking (prompt encoding §6.1) ---

  void parse_thinking() {
    bool thinks = rules_.thinks_by_default;
    if (request_.model.find("deepseek-chat") != std::string::npos) thinks = false;
    if (request_.model.find("deepseek-reasoner") != std::string::npos) thinks = true;
    std::optional<bool> toggle;  // the weakest first, so that the strongest is the last to write
    if (const Json* kwargs = fields_.object("chat_template_kwargs")) {
      JsonFields inner(*kwargs, "chat_template_kwargs", &error_);
      for (const char* name : {"enable_thinking", "thinking"})
        if (const auto value = inner.boolean(name)) toggle = value;
      parse_effort(inner.find("reasoning_effort"), "chat_template_kwargs.reasoning_effort",
                   &toggle);
    }
    if (const auto value = fields_.boolean("enable_thinking")) toggle = value;
    if (const Json* think = fields_.find("think")) {
      if (think->is_boolean())
        toggle = think->get<bool>();
      else
        parse_effort(think, "think", &toggle);
    }
    if (const Json* reasoning = fields_.object("reasoning")) {
      JsonFields inner(*reasoning, "reasoning", &error_);
      parse_effort(inner.find("effort"), "reasoning.effort", &toggle);
      if (const auto value = inner.boolean("enabled")) toggle = value;
      request_.excludes_reasoning = inner.boolean("exclude").value_or(false);
    }
    parse_effort(fields_.find("reasoning_effort"), "reasoning_effort", &toggle);
    if (const Json* thinking = fields_.object("thinking")) {
      JsonFields inner(*thinking, "thinking", &error_);
      const auto type = inner.string("type");
      if (type && *type != "enabled" && *type != "disabled" && *type != "adaptive")
        fail(invalid_value("thinking.type", "thinking.type: wanted enabled or disabled, found \"" +
                                                shown_text(*type) + "\""));
      if (type) toggle = *type != "disabled";
    }
    request_.options.thinking = toggle.value_or(thinks);
    if (const auto value = fields_.boolean("include_reasoning"))
      request_.excludes_reasoning |= !*value;
    const auto format = fields_.string("reasoning_format");
    request_.reasoning_in_content = format && *format == "none";
    if (fields_.boolean("separate_reasoning") == std::optional(false))
      request_.reasoning_in_content = true;
  }

  void parse_effort(const Json* value, const char* path, std::optional<bool>* toggle) {
    if (!value) return;
    using text::EffortLevel;
    static constexpr std::array<std::pair<std::string_view, EffortLevel>, 7> kNames = {
        {{"minimal", EffortLevel::kLow},
         {"low", EffortLevel::kLow},
         {"medium", EffortLevel::kHigh},
         {"high", EffortLevel::kHigh},
         {"xhigh", EffortLevel::kHigh},
         {"max", EffortLevel::kMax},
         {"ultra", EffortLevel::kMax}}};
    std::optional<int64_t> number = whole_number(*value);
    if (value->is_string()) {
      const auto& name = value->get_ref<const std::string&>();
      if (name == "none") {
        *toggle = false;
        return;
      }
      for (const auto& [known, level] : kNames)
        if (name == known) {
          request_.options.effort = level;
          *toggle = true;
          return;
        }
      int64_t parsed = 0;
      const auto result = std::from_chars(name.data(), name.data() + name.size(), parsed);
      if (result.ec == std::errc() && result.ptr == name.data() + name.size()) number = parsed;
    }
    if (!number || *number < 1 || *number > 100)
      return fail(
          invalid_value(path, fmt::format("{}: wanted none, minimal, low, medium, high, xhigh, "
                                          "max or 1 to 100, found {}",
                                          path, shown(*value))));
    request_.options.effort_number = static_cast<int>(*number);
    *toggle = true;
  }

  // A trailing assistant message is continued, unless the client says otherwise.
  void parse_end() {
    const auto adds_prompt = fields_.boolean("add_generation_prompt");
    const auto continues = fields_.boolean("continue_final_message");
    if (error_) return;
    if (adds_prompt.value_or(false) && continues.value_or(false))
      return fail(
          invalid_value("continue_final_message",
                        "continue_final_message and add_generation_prompt exclude each other"));
    const text::ChatMessage& last = request_.messages.back();
    const bool can_continue = last.role == text::Role::kAssistant && last.tool_calls.empty();
    if (continues.value_or(false) && !can_continue)
      return fail(invalid_value("continue_final_message",
                                "continue_final_message: the last message is not the assistant's"));
    if (can_continue && continues.value_or(true) && !adds_prompt.value_or(false))
      request_.options.end = text::PromptEnd::kContinue;
  }

  // --- the rest, field by field ---

  void parse_stream() {
    request_.stream = fields_.boolean("stream").value_or(false);
    if (const Json* options = fields_.object("stream_options")) {
      JsonFields inner(*options, "stream_options", &error_);
      request_.include_usage = inner.boolean("include_usage").value_or(false) && request_.stream;
    }
    request_.timings_per_token = fields_.boolean("timings_per_token").value_or(false);
    request_.return_progress = fields_.boolean("return_progress").value_or(false);
    request_.may_reuse_prefix = fields_.boolean("cache_prompt").value_or(true);
  }

  void parse_limits() {
    for (const char* name : {"max_completion_tokens", "max_tokens", "n_predict"}) {
      const auto value = fields_.integer(name, -1, INT64_MAX);
      if (!value) continue;
      if (*value == 0)
        return fail(
            invalid_value(name, std::string(name) + ": wanted at least 1, or -1 for no limit"));
      request_.answer_tokens_max = *value == -1 ? INT64_MAX : *value;
      break;
    }
    request_.answer_tokens_min = fields_.integer("min_tokens", 0, INT64_MAX).value_or(0);
    request_.ignores_end_of_turn = fields_.boolean("ignore_eos").value_or(false);
    fields_.integer("n_keep", -1, INT64_MAX);
    fields_.integer("n_discard", 0, INT64_MAX);
  }

  void parse_stops() {
    const Json* stop = fields_.find("stop");
    if (stop && stop->is_string()) add_stop(*stop, "stop");
    if (stop && stop->is_array()) {
      if (static_cast<int64_t>(stop->size()) > kStopStringsMax)
        fail(invalid_value("stop", fmt::format("stop: {} strings, at most {} are taken",
                                               stop->size(), kStopStringsMax)));
      for (size_t i = 0; i < stop->size() && !error_; ++i)
        add_stop((*stop)[i], fmt::format("stop[{}]", i));
    }
    if (stop && !stop->is_string() && !stop->is_array())
      fail(invalid_type("stop",
                        "stop: wanted a string or an array of strings, found " + shown(*stop)));
    const Json* tokens = fields_.array("stop_token_ids");
    if (tokens && static_cast<int64_t>(tokens->size()) > kStopTokensMax)
      fail(invalid_value("stop_token_ids",
                         fmt::format("stop_token_ids: {} ids, at most {} are taken", tokens->size(),
                                     kStopTokensMax)));
    for (size_t i = 0; tokens && i < tokens->size() && !error_; ++i) {
      const auto id = whole_number((*tokens)[i]);
      if (!id || *id < 0 || *id >= rules_.vocab_count)
        fail(invalid_value("stop_token_ids",
                           fmt::format("stop_token_ids[{}]: wanted 0 to {}, found {}", i,
                                       rules_.vocab_count - 1, shown((*tokens)[i]))));
      else
        request_.stop_tokens.push_back(static_cast<TokenId>(*id));
    }
    request_.includes_stop_string = fields_.boolean("include_stop_str_in_output").value_or(false);
  }

  void add_stop(const Json& value, const std::string& path) {
    if (!value.is_string())
      return fail(invalid_type(path, path + ": wanted a string, found " + shown(value)));
    const auto& text = value.get_ref<const std::string&>();
    if (text.empty() || static_cast<int64_t>(text.size()) > kStopBytesMax)
      return fail(invalid_value(path, fmt::format("{}: wanted 1 to {} bytes, found {}", path,
                                                  kStopBytesMax, text.size())));
    request_.stop_strings.push_back(text);
  }

  void parse_sampling() {
    SamplingParams& sampling = request_.sampling;
    sampling.temperature = fields_.number("temperature", 0, 2).value_or(rules_.default_temperature);
    sampling.top_p = fields_.number("top_p", 0, 1).value_or(rules_.default_top_p);
    sampling.top_k = std::max<int64_t>(0, fields_.integer("top_k", -1, INT32_MAX).value_or(0));
    sampling.min_p = fields_.number("min_p", 0, 1).value_or(0);
    sampling.frequency_penalty = fields_.number("frequency_penalty", -2, 2).value_or(0);
    sampling.presence_penalty = fields_.number("presence_penalty", -2, 2).value_or(0);
    constexpr double kPenaltyMin = 0.01, kPenaltyMax = 100;
    for (const char* name : {"repeat_penalty", "repetition_penalty"})
      sampling.repetition_penalty =
          fields_.number(name, kPenaltyMin, kPenaltyMax).value_or(sampling.repetition_penalty);
    sampling.repeat_last_n = fields_.integer("repeat_last_n", -1, INT32_MAX).value_or(-1);
    parse_seed();
  }

  // Any 64 bits, signed or not; -1 is random.
  void parse_seed() {
    const Json* seed = fields_.find("seed");
    if (!seed) return;
    if (seed->is_number_unsigned()) {
      request_.seed = seed->get<uint64_t>();
    } else if (const auto number = whole_number(*seed)) {
      if (*number != -1) request_.seed = static_cast<uint64_t>(*number);
    } else {
      fail(invalid_type("seed", "seed: wanted a whole number of 64 bits, found " + shown(*seed)));
    }
  }

  void parse_logit_bias() {
    const Json* bias = fields_.find("logit_bias");
    if (!bias) return;
    if (!bias->is_object() && !bias->is_array())
      return fail(invalid_type("logit_bias",
                               "logit_bias: wanted an object of token ids, found " + shown(*bias)));
    if (static_cast<int64_t>(bias->size()) > kLogitBiasMax)
      return fail(
          invalid_value("logit_bias", fmt::format("logit_bias: {} entries, at most {} are taken",
                                                  bias->size(), kLogitBiasMax)));
    if (bias->is_object())
      for (const auto& [key, value] : bias->items()) {
        int64_t id = -1;
        const auto result = std::from_chars(key.data(), key.data() + key.size(), id);
        const bool is_number = result.ec == std::errc() && result.ptr == key.data() + key.size();
        add_bias(is_number ? id : -1, shown_text(key), value);
      }
    else
      for (const Json& pair : *bias) {
        if (!pair.is_array() || pair.size() != 2)
          return fail(invalid_type("logit_bias", "logit_bias: wanted pairs [token id, bias]"));
        add_bias(whole_number(pair[0]).value_or(-1), shown(pair[0]), pair[1]);
      }
  }

  void add_bias(int64_t id, const std::string& shown_id, const Json& value) {
    if (id < 0 || id >= rules_.vocab_count)
      return fail(
          invalid_value("logit_bias", fmt::format("logit_bias: \"{}\" is no token id, wanted 0 "
                                                  "to {}",
                                                  shown_id, rules_.vocab_count - 1)));
    const bool is_ban = value == false;
    if (!is_ban &&
        (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100)))
      return fail(invalid_value(
          "logit_bias",
          fmt::format("logit_bias.{}: wanted -100 to 100, found {}", id, shown(value))));
    constexpr float kBan = -1e9f;
    request_.sampling.logit_bias.push_back(
        {static_cast<TokenId>(id), is_ban ? kBan : value.get<float>()});
  }

  void parse_logprobs() {
    request_.wants_logprobs = fields_.boolean("logprobs").value_or(false);
    const auto top = fields_.integer("top_logprobs", 0, kTopLogprobsMax);
    const auto n_probs = fields_.integer("n_probs", 0, kTopLogprobsMax);
    if (top && *top > 0 && !request_.wants_logprobs)
      fail(invalid_value("top_logprobs", "top_logprobs: needs \"logprobs\": true"));
    if (n_probs && *n_probs > 0) request_.wants_logprobs = true;
    request_.top_logprobs = static_cast<int>(top.value_or(n_probs.value_or(0)));
  }

  // {"draft": "auto" | "off" | N}
  void parse_speculation() {
    request_.drafts = rules_.default_drafts;
    const Json* speculation = fields_.object("speculation");
    if (!speculation) return;
    const auto draft = speculation->find("draft");
    if (draft == speculation->end() || draft->is_null()) return;
    const auto number = whole_number(*draft);
    const auto wish = parse_draft_wish(draft->is_string() ? draft->get<std::string>()
                                       : number           ? std::to_string(*number)
                                                          : shown(*draft));
    if (!wish)
      return fail(invalid_value("speculation.draft",
                                "speculation.draft: " + shown_text(wish.status().message())));
    request_.drafts = *wish;
  }

  const Json& body_;
  const ChatRequestRules& rules_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  ChatRequest request_;
};

}  // namespace

ChatRequestOrError parse_chat_request(std::string_view body, const ChatRequestRules& rules) {
  RequestJson json = parse_request_json(body, rules.body_bytes_max);
  if (json.error) return {{}, std::move(json.error)};
  return ChatRequestParser(json.object, rules).run();
}

}  // namespace fathom::server
