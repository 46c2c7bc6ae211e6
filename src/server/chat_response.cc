#include "server/chat_response.h"

#include <algorithm>
#include <utility>

#include "server/json_output.h"

namespace fathom::server {

namespace {

std::string json_quoted(std::string_view text) {
  return json_text(text);
}

const char* name_of(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

Json choice_json(const TokenChoice& choice) {
  Json bytes = Json::array();
  for (char byte : choice.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  // JSON has no -inf; by convention -9999 stands for impossible.
  return {{"token", choice.text}, {"logprob", std::max(choice.logprob, -9999.0)}, {"bytes", bytes}};
}

std::string logprobs_json(const std::vector<TokenReport>& reports) {
  Json content = Json::array();
  for (const TokenReport& report : reports) {
    Json entry = choice_json(report.chosen);
    entry["top_logprobs"] = Json::array();
    for (const TokenChoice& other : report.top) entry["top_logprobs"].push_back(choice_json(other));
    content.push_back(std::move(entry));
  }
  return json_text({{"content", std::move(content)}, {"refusal", nullptr}});
}

Json usage_json(const AnswerUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details",
           {{"cached_tokens", usage.cached_tokens}, {"image_tokens", usage.image_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"prompt_cache_hit_tokens", usage.cached_tokens},
          {"prompt_cache_miss_tokens", usage.prompt_tokens - usage.cached_tokens}};
}

double per_second(int64_t count, double ms) {
  return ms > 0 ? static_cast<double>(count) * 1000 / ms : 0;
}

Json timings_json(const AnswerSummary& summary) {
  const AnswerUsage& usage = summary.usage;
  const AnswerTimings& timings = summary.timings;
  const DraftTally drafts = total_of(summary.drafts);
  const int64_t prompt_n = usage.prompt_tokens - usage.cached_tokens;
  const double prompt_ms = timings.picture_ms + timings.prefill_ms;
  const auto each = [](double ms, int64_t count) {
    return count > 0 ? ms / static_cast<double>(count) : 0;
  };
  return {{"cache_n", usage.cached_tokens},
          {"prompt_n", prompt_n},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", each(prompt_ms, prompt_n)},
          {"prompt_per_second", per_second(prompt_n, prompt_ms)},
          {"predicted_n", usage.completion_tokens},
          {"predicted_ms", timings.decode_ms},
          {"predicted_per_token_ms", each(timings.decode_ms, usage.completion_tokens)},
          {"predicted_per_second", per_second(usage.completion_tokens, timings.decode_ms)},
          {"queue_ms", timings.queue_ms},
          {"image_ms", timings.picture_ms},
          {"draft_n", drafts.judged},
          {"draft_n_accepted", drafts.accepted}};
}

std::string reasoning_fields(ReasoningField field, const std::string& reasoning) {
  const std::string value = json_quoted(reasoning);
  std::string text;
  if (field != ReasoningField::kReasoning) text += "\"reasoning_content\":" + value;
  if (field == ReasoningField::kBoth) text += ",";
  if (field != ReasoningField::kReasoningContent) text += "\"reasoning\":" + value;
  return text;
}

std::string prefix_of(const ChatIdentity& identity, const char* object) {
  return fmt::format(
      R"({{"id":"{}","object":"{}","created":{},"model":{},"system_fingerprint":"{}",)",
      identity.id, object, identity.created, json_quoted(identity.model), identity.fingerprint);
}

}  // namespace

ChatWriter::ChatWriter(ChatIdentity identity, ChatFormat format)
    : format_(format),
      prefix_("data: " + prefix_of(identity, "chat.completion.chunk")),
      body_prefix_(prefix_of(identity, "chat.completion")) {}

std::string ChatWriter::chunk(const std::string& choices, const std::string& more) const {
  std::string text = prefix_;
  text += "\"choices\":[";
  text += choices;
  text += ']';
  if (format_.include_usage && more.find("\"usage\":") == std::string::npos)
    text += ",\"usage\":null";
  text += more;
  text += "}\n\n";
  return text;
}

std::string ChatWriter::role_chunk() const {
  return chunk(R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
               R"("finish_reason":null})");
}

std::string ChatWriter::delta_chunk(const AnswerDelta& delta, const AnswerSummary& so_far) const {
  std::string fields;
  if (!delta.reasoning.empty()) fields = reasoning_fields(format_.reasoning_field, delta.reasoning);
  if (!delta.content.empty())
    fields += (fields.empty() ? "\"content\":" : ",\"content\":") + json_quoted(delta.content);
  // Entries of a token that ends inside a character come with no text of their own yet.
  if (fields.empty()) fields = "\"content\":\"\"";
  const std::string logprobs = delta.logprobs.empty() ? "null" : logprobs_json(delta.logprobs);
  return chunk(
      fmt::format(R"({{"index":0,"delta":{{{}}},"logprobs":{},"finish_reason":null}})", fields,
                  logprobs),
      format_.timings_per_token ? ",\"timings\":" + timings_json(so_far).dump() : std::string());
}

std::string ChatWriter::progress_chunk(int64_t done_tokens, const AnswerUsage& usage,
                                       double ms) const {
  const Json progress = {{"total", usage.prompt_tokens},
                         {"cache", usage.cached_tokens},
                         {"processed", done_tokens},
                         {"time_ms", ms}};
  return chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":null})",
               ",\"prompt_progress\":" + progress.dump());
}

std::string ChatWriter::finish_chunk(const AnswerSummary& summary) const {
  return chunk(
      fmt::format(R"({{"index":0,"delta":{{}},"logprobs":null,"finish_reason":"{}"{}}})",
                  name_of(summary.reason),
                  summary.stop_string ? ",\"stop_reason\":" + json_quoted(*summary.stop_string)
                                      : std::string()),
      ",\"timings\":" + timings_json(summary).dump());
}

std::string ChatWriter::usage_chunk(const AnswerUsage& usage) const {
  return chunk("", ",\"usage\":" + usage_json(usage).dump());
}

std::string ChatWriter::error_event(const ApiError& error) {
  return "data: " + error_body(error) + "\n\n";
}

std::string ChatWriter::body(const AnswerDelta& whole, bool has_reasoning,
                             const AnswerSummary& summary) const {
  std::string message = "\"role\":\"assistant\",\"content\":" + json_quoted(whole.content);
  if (has_reasoning) message += "," + reasoning_fields(format_.reasoning_field, whole.reasoning);
  const std::string logprobs = format_.wants_logprobs ? logprobs_json(whole.logprobs) : "null";
  const std::string stop =
      summary.stop_string ? ",\"stop_reason\":" + json_quoted(*summary.stop_string) : "";
  return fmt::format(
      R"({}"choices":[{{"index":0,"message":{{{}}},"logprobs":{},"finish_reason":"{}"{}}}],)"
      R"("usage":{},"timings":{}}})",
      body_prefix_, message, logprobs, name_of(summary.reason), stop,
      usage_json(summary.usage).dump(), timings_json(summary).dump());
}

}  // namespace fathom::server
