// Topic: Chat completions over the wire with a scripted model (HTTP API §15, C and L).
#include <future>
#include <thread>

#include "tests/server/server_fixture.h"

namespace fathom {
namespace {

using namespace std::chrono_literals;
using fathom::testing::events_of;
using fathom::testing::http_request;
using fathom::testing::HttpClient;
using fathom::testing::HttpReply;
using ::testing::HasSubstr;

class ChatApi : public fathom::testing::ServerTest {
 protected:
  static Json json_of(const HttpReply& reply) {
    auto json = parse_json(reply.body);
    EXPECT_TRUE(json.is_ok()) << reply.body;
    return json ? *json : Json::object();
  }
  // A stream's deltas joined, by field.
  static std::string joined(const std::vector<Json>& events, const char* field) {
    std::string text;
    for (const Json& event : events)
      if (event.is_object() && !event["choices"].empty() &&
          event["choices"][0]["delta"].contains(field))
        text += event["choices"][0]["delta"][field].get<std::string>();
    return text;
  }
  void start_asking(HttpClient& client, const std::string& fields, const std::string& user = "hi") {
    client.send(http_request("POST", "/v1/chat/completions", body(fields, user)));
  }
};

TEST_F(ChatApi, TheMinimalBodyIsAnswered) {
  start();
  const HttpReply reply = chat("");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = json_of(reply);
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "fake-model");
  EXPECT_EQ(json["choices"][0]["message"]["content"], "You said: hi");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_FALSE(json["choices"][0]["message"].contains("reasoning_content"));
  EXPECT_FALSE(json["choices"][0]["message"].contains("tool_calls"));
  const Json& usage = json["usage"];
  EXPECT_EQ(usage["total_tokens"],
            usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(ChatApi, AStreamHasTheOrderThatClientsExpect) {
  start();
  const HttpReply reply = chat(
      R"("stream":true,"thinking":{"type":"enabled"},"stream_options":{"include_usage":true})");
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(reply.headers.at("x-accel-buffering"), "no");
  const auto events = events_of(reply.body);
  ASSERT_GT(events.size(), 5u);
  EXPECT_EQ(events[0]["choices"][0]["delta"], Json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(joined(events, "reasoning_content"), "The user said 2 bytes.");
  EXPECT_EQ(joined(events, "content"), "You said: hi");
  int roles = 0, ends = 0;
  bool has_content_begun = false;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    EXPECT_EQ(events[i]["id"], events[0]["id"]);
    EXPECT_TRUE(events[i]["usage"].is_null());
    const Json& choice = events[i]["choices"][0];
    roles += choice["delta"].contains("role");
    ends += !choice["finish_reason"].is_null();
    if (choice["delta"].contains("content") && i > 0) has_content_begun = true;
    EXPECT_FALSE(has_content_begun && choice["delta"].contains("reasoning_content"));
  }
  EXPECT_EQ(roles, 1);
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(events[events.size() - 2]["choices"].empty());
  EXPECT_GT(events[events.size() - 2]["usage"]["completion_tokens"], 0);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(ChatApi, UsageComesInAStreamOnlyWhenAskedFor) {
  start();
  for (const char* fields : {R"("stream":true)", R"("stream":true,"stream_options":null)",
                             R"("stream":true,"stream_options":{})",
                             R"("stream":true,"stream_options":{"include_usage":false})"}) {
    for (const Json& event : events_of(chat(fields).body)) {
      if (!event.is_object()) continue;
      EXPECT_FALSE(event["choices"].empty()) << fields;
      EXPECT_FALSE(event.contains("usage") && !event["usage"].is_null()) << fields;
    }
  }
  EXPECT_EQ(chat(R"("stream_options":{"include_usage":true})").status, 200);
}

TEST_F(ChatApi, StreamAndBodyGiveTheSameText) {
  start();
  script_->answer_of = [](const std::string&) {
    return "Caf\xC3\xA9 \xF0\x9F\xA6\x80 \xE6\xAD\xAA STOP more";
  };
  const std::string fields = R"("temperature":0,"stop":["STOP"],"thinking":{"type":"enabled"})";
  const Json whole = json_of(chat(fields));
  const auto events = events_of(chat(fields + R"(,"stream":true)").body);
  EXPECT_EQ(joined(events, "content"), whole["choices"][0]["message"]["content"]);
  EXPECT_EQ(joined(events, "reasoning_content"),
            whole["choices"][0]["message"]["reasoning_content"]);
  EXPECT_EQ(whole["choices"][0]["stop_reason"], "STOP");
}

TEST_F(ChatApi, ReasoningGoesWhereItIsWanted) {
  start();
  const auto message = [&](const std::string& fields) {
    return json_of(chat(R"("thinking":{"type":"enabled"},)" + fields))["choices"][0]["message"];
  };
  EXPECT_EQ(message(R"("n":1)")["reasoning_content"], "The user said 2 bytes.");
  const Json excluded = message(R"("reasoning":{"exclude":true})");
  EXPECT_FALSE(excluded.contains("reasoning_content"));
  EXPECT_EQ(excluded["content"], "You said: hi");
  EXPECT_EQ(message(R"("reasoning_format":"none")")["content"],
            "<think>The user said 2 bytes.</think>You said: hi");
}

TEST_F(ChatApi, LogprobsHoldTheTokensBytes) {
  start();
  script_->answer_of = [](const std::string&) { return "the \xF0\x9F\xA6\x80"; };
  const std::string fields = R"("temperature":0,"logprobs":true,"top_logprobs":3)";
  const HttpReply first = chat(fields);
  ASSERT_EQ(first.status, 200) << first.body;
  const Json whole = json_of(first)["choices"][0];
  std::string bytes;
  for (const Json& entry : whole["logprobs"]["content"]) {
    for (const Json& byte : entry["bytes"]) bytes += static_cast<char>(byte.get<int>());
    EXPECT_LE(entry["logprob"], 0);
    EXPECT_EQ(entry["top_logprobs"].size(), 3u);
  }
  EXPECT_EQ(bytes, whole["message"]["content"]);
  Json streamed = Json::array();
  for (const Json& event : events_of(chat(fields + R"(,"stream":true)").body))
    if (event.is_object() && event["choices"][0]["logprobs"].is_object())
      for (const Json& entry : event["choices"][0]["logprobs"]["content"])
        streamed.push_back(entry);
  EXPECT_EQ(streamed, whole["logprobs"]["content"]);
}

TEST_F(ChatApi, ABannedTokenIsNeverDrawn) {
  start();
  const Json json = json_of(
      chat(fmt::format(R"("temperature":0,"max_tokens":1,"logit_bias":{{"{}":-100}})", int{'Y'})));
  EXPECT_NE(json["choices"][0]["message"]["content"], "Y");
}

TEST_F(ChatApi, MaxTokensAboveTheContextIsClamped) {
  start();
  EXPECT_EQ(chat(R"("max_tokens":1000000000)").status, 200);
}

TEST_F(ChatApi, APromptAboveTheContextIsExplained) {
  start({.context_tokens = 64});
  const HttpReply reply = ask("POST", "/v1/chat/completions", body("", std::string(100, 'x')));
  EXPECT_EQ(reply.status, 400);
  const Json error = json_of(reply)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "messages");
  EXPECT_EQ(error["n_ctx"], 64);
  EXPECT_GT(error["n_prompt_tokens"], 100);
  EXPECT_THAT(error["message"].get<std::string>(),
              HasSubstr("maximum context length is 64 tokens"));
  const HttpReply full = ask("POST", "/v1/chat/completions", body("", std::string(59, 'x')));
  ASSERT_EQ(full.status, 200) << full.body;
  EXPECT_EQ(json_of(full)["usage"]["prompt_tokens"], 63);
  EXPECT_EQ(json_of(full)["usage"]["completion_tokens"], 1);
  EXPECT_EQ(json_of(full)["choices"][0]["finish_reason"], "length");
}

TEST_F(ChatApi, OddHistoriesAreAnswered) {
  start();
  const std::string x = R"({"role":"user","content":"x"})", y = R"({"role":"user","content":"y"})";
  const std::string broken_call =
      R"({"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{b"}}]})";
  const std::string orphan = R"({"role":"tool","tool_call_id":"gone","content":"1"})";
  const std::string broken_history = x + "," + broken_call + "," + y;
  const std::string orphan_history = x + "," + orphan + "," + y;
  for (const char* messages :
       {R"({"role":"user","content":"<｜User｜></think><｜deepseek_image｜>"})",
        broken_history.c_str(), orphan_history.c_str(), R"({"role":"system","content":"Be kind."})",
        R"({"role":"user","content":""})", R"({"role":"user","content":"half \ud83d"})",
        R"({"role":"user","content":"x"},{"role":"assistant","content":"The answer is"})"}) {
    const HttpReply reply = ask("POST", "/v1/chat/completions",
                                fmt::format(R"({{"max_tokens":4,"messages":[{}]}})", messages));
    EXPECT_EQ(reply.status, 200) << messages << "\n" << reply.body;
  }
}

TEST_F(ChatApi, AFaultOfTheModelIsA500OrAnEvent) {
  start();
  script_->fails_at = 3;
  const HttpReply reply = chat("");
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(json_of(reply)["error"]["type"], "server_error");
  const auto events = events_of(chat("\"stream\":true").body);
  EXPECT_TRUE(events.back().contains("error")) << "and no [DONE]";
  script_->fails_at = -1;
  EXPECT_EQ(chat("").status, 200);
}

TEST_F(ChatApi, TokenEndpointsShowWhatTheModelGets) {
  start();
  const Json ids =
      json_of(ask("POST", "/tokenize", R"({"content":"STOP<think>","with_pieces":true})"));
  EXPECT_EQ(ids["count"], 3) << "STO, P and the mark";
  EXPECT_EQ(ids["tokens"][0]["piece"], "STO");
  EXPECT_EQ(
      json_of(ask("POST", "/tokenize", R"({"content":"<think>","parse_special":false})"))["count"],
      6)
      << "th is one token";
  const Json text = json_of(ask("POST", "/detokenize", R"({"tokens":[72,105,240]})"));
  EXPECT_EQ(text["content"], "Hi\xEF\xBF\xBD");
  EXPECT_EQ(ask("POST", "/detokenize", R"({"tokens":[100000]})").status, 400);
  EXPECT_EQ(ask("POST", "/detokenize", "{}").status, 400);
  const std::string long_text((16 << 20) + 1, 'x');
  EXPECT_EQ(ask("POST", "/tokenize", R"({"content":")" + long_text + "\"}").status, 400);
  const Json prompt = json_of(ask("POST", "/apply-template", body("")));
  EXPECT_EQ(prompt["prompt"], "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>");
  const Json same = json_of(ask("POST", "/tokenize", body("")));
  EXPECT_EQ(same["tokens"], prompt["token_ids"]);
}

TEST_F(ChatApi, ModelsAreListedByName) {
  start();
  const Json list = json_of(ask("GET", "/v1/models"));
  EXPECT_EQ(list["data"][0]["id"], "fake-model");
  EXPECT_EQ(list["data"][0]["context_length"], 4096);
  EXPECT_EQ(ask("GET", "/v1/models/fake-model").status, 200);
  EXPECT_EQ(ask("GET", "/v1/models/other").status, 404);
}

// --- clients that leave, queues, drains (L1 to L6) ---

TEST_F(ChatApi, AClientThatLeavesFreesTheEngine) {
  start({.engine = {.prefill_chunk_tokens = 16}});
  script_->never_ends = true;
  script_->forward_ms = 20;
  for (const bool stream : {true, false})
    for (const bool with_reset : {true, false})
      for (const char* where : {"prefill", "decode"}) {
        HttpClient client(http_->port());
        const bool in_prefill = std::string(where) == "prefill";
        start_asking(client,
                     stream ? "\"stream\":true,\"cache_prompt\":false" : "\"cache_prompt\":false",
                     std::string(in_prefill ? 3000 : 3, 'x'));
        const int64_t before = script_->forward_count;
        while (script_->forward_count < before + (in_prefill ? 2 : 5))
          std::this_thread::sleep_for(5ms);
        if (with_reset)
          client.reset();
        else
          client.shutdown_writing();
        EXPECT_TRUE(is_free_within(2000ms))
            << where << " stream " << stream << " reset " << with_reset;
      }
}

TEST_F(ChatApi, AClientThatLeavesTheQueueIsForgotten) {
  start();
  script_->never_ends = true;
  script_->forward_ms = 5;
  HttpClient running(http_->port());
  start_asking(running, "\"stream\":true");
  while (engine_->status().running == 0) std::this_thread::sleep_for(5ms);
  {
    HttpClient waiting(http_->port());
    start_asking(waiting, "\"stream\":true");
    while (engine_->status().waiting == 0) std::this_thread::sleep_for(5ms);
  }
  const auto end = std::chrono::steady_clock::now() + 2000ms;
  while (engine_->status().waiting > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(engine_->status().waiting, 0);
  running.reset();
  EXPECT_TRUE(is_free_within(2000ms));
}

TEST_F(ChatApi, AFinBehindPipelinedBytesIsSeen) {
  start();
  script_->never_ends = true;
  script_->forward_ms = 5;
  HttpClient client(http_->port());
  start_asking(client, "");
  client.send(http_request("GET", "/health"));
  while (engine_->status().running == 0) std::this_thread::sleep_for(5ms);
  client.shutdown_writing();
  EXPECT_TRUE(is_free_within(2000ms));
}

TEST_F(ChatApi, ARetryGoesOnWhereTheFirstTryStopped) {
  start({.engine = {.prefill_chunk_tokens = 64}});
  script_->forward_ms = 30;
  const std::string long_text(2000, 'x');
  {
    HttpClient client(http_->port());
    start_asking(client, "\"stream\":true", long_text);
    while (script_->forward_count < 3) std::this_thread::sleep_for(5ms);
  }
  ASSERT_TRUE(is_free_within(2000ms));
  script_->forward_ms = 0;
  const Json json =
      json_of(ask("POST", "/v1/chat/completions", body("\"max_tokens\":2", long_text)));
  EXPECT_GT(json["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(ChatApi, AFullQueueSaysWhenToComeBack) {
  start({.engine = {.queue_max = 1}});
  script_->never_ends = true;
  script_->forward_ms = 5;
  HttpClient running(http_->port()), waiting(http_->port());
  start_asking(running, "");
  while (engine_->status().running == 0) std::this_thread::sleep_for(5ms);
  start_asking(waiting, "");
  while (engine_->status().waiting == 0) std::this_thread::sleep_for(5ms);
  const HttpReply reply = chat("");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(json_of(reply)["error"]["code"], "queue_full");
  EXPECT_GE(std::stoi(reply.headers.at("retry-after")), 1);
  EXPECT_EQ(ask("GET", "/health").status, 200) << "a full queue is not ill health";
}

TEST_F(ChatApi, ASlowReaderIsDroppedAndOthersAreNot) {
  Options options;
  options.limits.unsent_bytes_max = 200'000;
  start(options);
  script_->never_ends = true;
  HttpClient slow(http_->port());
  start_asking(slow, "\"stream\":true");  // and never reads
  EXPECT_EQ(slow.read_some(1).empty(), false);
  // The kernel's buffers hold some megabytes of the stream before the server's own begin to fill.
  EXPECT_TRUE(is_free_within(20'000ms));
  script_->never_ends = false;
  EXPECT_EQ(chat("").status, 200);
}

TEST_F(ChatApi, SilenceIsFilledWithComments) {
  Options options;
  options.limits.heartbeat = 100ms;
  start(options);
  script_->forward_ms = 700;
  const HttpReply reply = chat("\"stream\":true,\"max_tokens\":1");
  size_t pings = 0;
  for (size_t at = reply.body.find(": ping\n\n"); at != std::string::npos;
       at = reply.body.find(": ping\n\n", at + 1))
    ++pings;
  EXPECT_GE(pings, 3u);
  EXPECT_EQ(events_of(reply.body).back(), "[DONE]") << "and never inside an event";
}

TEST_F(ChatApi, DrainingFinishesOldAndRefusesNew) {
  start();
  script_->forward_ms = 20;
  HttpClient client(http_->port());
  start_asking(client, "\"stream\":true");
  while (engine_->status().running == 0) std::this_thread::sleep_for(5ms);
  api_->begin_drain();
  const HttpReply health = ask("GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json_of(health)["error"]["code"], "shutting_down");
  EXPECT_EQ(chat("").status, 503);
  const auto events = events_of(client.read_reply().body);
  EXPECT_EQ(joined(events, "content"), "You said: hi");
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_TRUE(client.is_closed_within(1000ms));
}

TEST_F(ChatApi, WhatTheDrainDoesNotWaitForEndsInAnErrorEvent) {
  start();
  script_->never_ends = true;
  script_->forward_ms = 5;
  HttpClient client(http_->port());
  start_asking(client, "\"stream\":true");
  while (engine_->status().running == 0) std::this_thread::sleep_for(5ms);
  api_->begin_drain();
  engine_->cancel_all();
  const auto events = events_of(client.read_reply().body);
  EXPECT_EQ(events.back()["error"]["code"], "shutting_down");
}

TEST_F(ChatApi, ManyClientsNeverSeeEachOthersText) {
  start({.engine = {.queue_max = 64}});
  constexpr int kClients = 4, kRequests = 25;
  std::vector<std::future<int>> clients;
  for (int c = 0; c < kClients; ++c)
    clients.push_back(std::async(std::launch::async, [this, c] {
      int wrong = 0;
      HttpClient client(http_->port());
      for (int r = 0; r < kRequests; ++r) {
        const std::string marker = fmt::format("marker-{}-{}", c, r);
        const bool stream = r % 2 == 0;
        client.send(http_request("POST", "/v1/chat/completions",
                                 body(stream ? "\"stream\":true" : "", marker)));
        const HttpReply reply = client.read_reply();
        const std::string text =
            stream ? joined(events_of(reply.body), "content")
                   : json_of(reply)["choices"][0]["message"]["content"].get<std::string>();
        wrong += text != "You said: " + marker;
      }
      return wrong;
    }));
  for (auto& client : clients) EXPECT_EQ(client.get(), 0);
}

}  // namespace
}  // namespace fathom
