#include "server/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "server/request_json.h"

namespace fathom::server {
namespace {

const ChatRequestRules kRules{.vocab_count = 500, .has_vision = true};

ChatRequestOrError parse(const std::string& body) {
  return parse_chat_request(body, kRules);
}

// The minimal body with one field more.
ChatRequestOrError with(const std::string& field) {
  return parse(R"({"messages":[{"role":"user","content":"hi"}],)" + field + "}");
}

TEST(ChatRequest, TheMinimalBodyHasTheDocumentedDefaults) {
  const auto parsed = parse(R"({"messages":[{"role":"user","content":"hi"}]})");
  ASSERT_FALSE(parsed.error) << parsed.error->message;
  EXPECT_EQ(parsed.request.messages.size(), 1u);
  EXPECT_TRUE(parsed.request.options.thinking);
  EXPECT_EQ(parsed.request.options.effort, text::EffortLevel::kHigh);
  EXPECT_EQ(parsed.request.sampling.temperature, 1.0);
  EXPECT_FALSE(parsed.request.stream);
  EXPECT_FALSE(parsed.request.answer_tokens_max);
}

TEST(ChatRequest, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":"1")", "temperature"},
      {R"("temperature":-1)", "temperature"},
      {R"("temperature":1e308)", "temperature"},
      {R"("top_p":1.1)", "top_p"},
      {R"("top_k":1.5)", "top_k"},
      {R"("top_k":1000000000000)", "top_k"},
      {R"("min_p":2)", "min_p"},
      {R"("max_tokens":-5)", "max_tokens"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":"2")", "max_tokens"},
      {R"("max_tokens":10000000000000000000)", "max_tokens"},
      {R"("n":0)", "n"},
      {R"("n":2)", "n"},
      {R"("length_penalty":2)", "length_penalty"},
      {R"("seed":"x")", "seed"},
      {R"("seed":18446744073709551616)", "seed"},
      {R"("stream":"true")", "stream"},
      {R"("stream_options":{"include_usage":"yes"})", "stream_options.include_usage"},
      {R"("logprobs":-1)", "logprobs"},
      {R"("top_logprobs":21,"logprobs":true)", "top_logprobs"},
      {R"("top_logprobs":5)", "top_logprobs"},
      {R"("logit_bias":{"5":"x"})", "logit_bias"},
      {R"("logit_bias":{"500":1})", "logit_bias"},
      {R"("logit_bias":{"hello":1})", "logit_bias"},
      {R"("stop":{})", "stop"},
      {R"("stop":[[]])", "stop[0]"},
      {R"("stop":"")", "stop"},
      {R"("tools":[{}])", "tools"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":"json")", "response_format"},
      {R"("chat_template_kwargs":{"thinking":"maybe"})", "chat_template_kwargs.thinking"},
      {R"("reasoning_effort":"extreme")", "reasoning_effort"},
      {R"("reasoning_effort":0)", "reasoning_effort"},
      {R"("thinking":{"type":"sideways"})", "thinking.type"},
      {R"("model":5)", "model"},
      {R"("modalities":["audio"])", "modalities"},
      {R"("speculation":{"draft":2.5})", "speculation.draft"},
      {R"("speculation":{"draft":65})", "speculation.draft"},
  };
  for (const auto& [field, param] : cases) {
    const auto parsed = with(field);
    ASSERT_TRUE(parsed.error) << field;
    EXPECT_EQ(parsed.error->status, 400) << field;
    EXPECT_EQ(parsed.error->param, param) << field;
    EXPECT_THAT(parsed.error->message, ::testing::HasSubstr(std::string(param).substr(0, 4)))
        << field;
  }
}

TEST(ChatRequest, HintsAndUnknownFieldsAreIgnored) {
  for (const char* field : {R"("user":5)",
                            R"("metadata":{"a":1})",
                            R"("store":true)",
                            R"("unknown_field":[1])",
                            R"("tools":[])",
                            R"("tools":null)",
                            R"("tool_choice":"auto")",
                            R"("response_format":{"type":"text"})",
                            R"("n":1)",
                            R"("n":1.0)",
                            R"("stop":[])",
                            R"("stream_options":{})",
                            R"("mirostat":0)",
                            R"("seed":-1)",
                            R"("seed":18446744073709551615)",
                            R"("dry_multiplier":0.0)",
                            R"("parallel_tool_calls":true)",
                            R"("max_tokens":-1)",
                            R"("keep_alive":"5m")",
                            R"("speculation":{"draft":2.0})",
                            R"("speculation":{"draft":"off"})"}) {
    const auto parsed = with(field);
    EXPECT_FALSE(parsed.error) << field << ": " << parsed.error->message;
  }
}

TEST(ChatRequest, ListsOfTokensAreBounded) {
  std::string ids = "1";
  for (int i = 1; i < 1024; ++i) ids += ",1";
  EXPECT_FALSE(with(R"("stop_token_ids":[)" + ids + "]").error);
  EXPECT_EQ(with(R"("stop_token_ids":[)" + ids + ",1]").error->param, "stop_token_ids");
}

TEST(ChatRequest, TheFirstOfTheLengthFieldsWins) {
  EXPECT_EQ(with(R"("max_tokens":5,"max_completion_tokens":7)").request.answer_tokens_max, 7);
  EXPECT_EQ(with(R"("max_tokens":5,"n_predict":9)").request.answer_tokens_max, 5);
}

TEST(ChatRequest, ThinkingFollowsTheTable) {
  const auto thinks = [](const std::string& field) { return with(field).request.options.thinking; };
  for (const char* off :
       {R"("thinking":{"type":"disabled"})", R"("enable_thinking":false)", R"("think":false)",
        R"("reasoning_effort":"none")", R"("reasoning":{"enabled":false})",
        R"("model":"deepseek-chat")", R"("chat_template_kwargs":{"thinking":false})",
        R"("thinking":{"type":"disabled"},"reasoning_effort":"high")"})
    EXPECT_FALSE(thinks(off)) << off;
  for (const char* on :
       {R"("thinking":{"type":"enabled"},"reasoning_effort":"none")",
        R"("model":"deepseek-chat","reasoning_effort":"low")", R"("model":"deepseek-reasoner")"})
    EXPECT_TRUE(thinks(on)) << on;
  EXPECT_EQ(with(R"("reasoning_effort":"xhigh")").request.options.effort, text::EffortLevel::kHigh);
  EXPECT_EQ(with(R"("reasoning_effort":"minimal")").request.options.effort,
            text::EffortLevel::kLow);
  EXPECT_EQ(with(R"("reasoning_effort":"33")").request.options.effort_number, 33);
  EXPECT_EQ(with(R"("reasoning_effort":33)").request.options.effort_number, 33);
}

ChatRequestOrError messages(const std::string& list) {
  return parse(R"({"messages":[)" + list + "]}");
}
const std::string kHi = R"({"role":"user","content":"hi"})";

TEST(ChatRequest, ShapesOfMessages) {
  for (const std::string& good :
       {kHi + R"(,{"role":"assistant","content":null},)" + kHi,
        kHi + R"(,{"role":"assistant","tool_calls":)"
              R"([{"id":"c","function":{"name":"f","arguments":"{"}}]})"
              R"(,{"role":"tool","tool_call_id":"c","content":null})",
        std::string(R"({"role":"developer","content":"A."},)") + kHi,
        std::string(R"({"role":"system","content":"A."})"),
        std::string(R"({"role":"user","content":""})"),
        std::string(R"({"role":"user","content":[]})"),
        std::string(
            R"({"role":"user","name":"bob","content":"hi","refusal":null,"annotations":[]})"),
        kHi +
            R"(,{"role":"assistant","content":[{"type":"output_text","text":"x"},)"
            R"({"type":"refusal","refusal":"y"}]},)" +
            kHi}) {
    const auto parsed = messages(good);
    EXPECT_FALSE(parsed.error) << good << ": " << parsed.error->message;
  }
  const std::pair<std::string, const char*> bad[] = {
      {"", "messages"},
      {R"({"role":"wizard","content":"x"})", "messages[0].role"},
      {R"({"content":"x"})", "messages[0].role"},
      {R"({"role":"user"})", "messages[0].content"},
      {R"({"role":"user","content":null})", "messages[0].content"},
      {R"({"role":"user","content":5})", "messages[0].content"},
      {kHi + R"(,{"role":"user","content":[{"type":"text"}]})", "messages[1].content[0].text"},
      {R"({"role":"user","content":[{"type":"video_url"}]})", "messages[0].content[0].type"},
      {R"("hi")", "messages[0]"},
      {"null", "messages[0]"},
      {"[]", "messages[0]"}};
  for (const auto& [list, param] : bad) {
    const auto parsed = messages(list);
    ASSERT_TRUE(parsed.error) << list;
    EXPECT_EQ(parsed.error->param, param) << list;
  }
}

TEST(ChatRequest, ReasoningOfOtherClientsIsFound) {
  const auto reasoning_of = [](const std::string& fields) {
    const auto parsed = parse_chat_request(
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",)" +
            fields + R"(},{"role":"user","content":"c"}]})",
        {});
    return parsed.error ? "error: " + parsed.error->param : parsed.request.messages[1].reasoning;
  };
  EXPECT_EQ(reasoning_of(R"("reasoning_content":"x","reasoning":"y")"), "x");
  EXPECT_EQ(reasoning_of(R"("reasoning":"y")"), "y");
  EXPECT_EQ(reasoning_of(R"("reasoning_details":[{"type":"reasoning.text","text":"p"},
                            {"type":"reasoning.encrypted","data":"!"},{"text":"q"}])"),
            "pq");
  EXPECT_EQ(reasoning_of(R"("thinking_blocks":[{"type":"thinking","thinking":"t"}, 5])"), "t");
  EXPECT_EQ(reasoning_of(R"("reasoning_content":5)"), "error: messages[1].reasoning_content");
}

TEST(ChatRequest, OldTurnsMayHoldWhatTheLastMayNot) {
  const std::string old =
      R"({"role":"user","content":[{"type":"input_audio"}]},{"role":"assistant","content":"x"},)" +
      kHi;
  const auto parsed = messages(old);
  ASSERT_FALSE(parsed.error) << parsed.error->message;
  EXPECT_EQ(parsed.request.messages[0].content[0].text, "[Unsupported input_audio]");
}

TEST(ChatRequest, PicturesComeOnlyAsData) {
  const auto picture = [](const std::string& url) {
    return messages(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":")" + url +
                    R"("}},{"type":"text","text":"what?"}]})");
  };
  const auto good = picture("data:image/png;base64,aGk=");
  ASSERT_FALSE(good.error) << good.error->message;
  EXPECT_EQ(good.request.pictures[0].bytes, "hi");
  EXPECT_EQ(good.request.messages[0].content[0].kind, text::ContentPart::Kind::kPicture);
  const auto fetched = picture("http://169.254.169.254/latest");
  ASSERT_TRUE(fetched.error);
  EXPECT_EQ(fetched.error->code, "image_url_disabled");
  EXPECT_EQ(fetched.error->param, "messages[0].content[0].image_url.url");
  EXPECT_EQ(picture("data:image/png;base64,!").error->code, "invalid_image");
  std::string many;
  for (int i = 0; i < 17; ++i) many += R"({"type":"image_url","image_url":"data:;base64,aGk="},)";
  many.pop_back();
  EXPECT_TRUE(messages(R"({"role":"user","content":[)" + many + "]}").error) << "17 pictures";
}

TEST(ChatRequest, ATrailingAssistantMessageIsContinued) {
  const std::string list = kHi + R"(,{"role":"assistant","content":"The answer is"})";
  EXPECT_EQ(messages(list).request.options.end, text::PromptEnd::kContinue);
  EXPECT_EQ(
      parse(R"({"add_generation_prompt":true,"messages":[)" + list + "]}").request.options.end,
      text::PromptEnd::kAnswer);
  EXPECT_TRUE(parse(R"({"add_generation_prompt":true,"continue_final_message":true,"messages":[)" +
                    list + "]}")
                  .error);
  EXPECT_TRUE(with(R"("continue_final_message":true)").error);
}

TEST(RequestJson, FollowsTheRulesForRequests) {
  const auto error_of = [](const std::string& body) {
    const auto json = parse_request_json(body, 1 << 20);
    return json.error ? json.error->code : std::string("none");
  };
  for (const char* bad : {"", "{:", "\"hi\"", "null", "[]", R"({"a":NaN})", R"({"a":1}x)",
                          R"({/*x*/})", R"({"a":1e999999})", R"({"messages":1,"messages":2})",
                          "{\"a\":\"\xff\"}", R"({"a":"\ud83d"})", "{\"\xff\":1}", "\xff{}"})
    EXPECT_EQ(error_of(bad), "invalid_json") << bad;
  EXPECT_EQ(error_of("\xEF\xBB\xBF{}"), "none") << "one BOM";
  EXPECT_EQ(error_of(R"({"max_tokens":1,"max_tokens":2})"), "none");
  EXPECT_EQ(error_of(std::string(129, '[') + std::string(129, ']')), "invalid_json");
  EXPECT_EQ(error_of(R"({"a":"\ud83d\ude00 \ufffd"})"), "none");
}

TEST(RequestJson, MarksLoneSurrogatesAndBadBytes) {
  EXPECT_EQ(mark_damage(R"("\ud83d\ude00 \ud83d \ude00 \\ud83d \u0041")"),
            R"("\ud83d\ude00 \uFDD0 \uFDD0 \\ud83d \u0041")");
  EXPECT_EQ(mark_damage(R"("\ud83d\ud83d\ude00")"), R"("\uFDD0\ud83d\ude00")");
  EXPECT_EQ(mark_damage(R"("\ud83)"), R"("\ud83)");
  EXPECT_EQ(mark_damage("\xFF \xEF\xBF\xBD \xF0\x9F"), "\xEF\xB7\x90 \xEF\xBF\xBD \xEF\xB7\x90");
}

TEST(RequestJson, DamageInMessagesBecomesReplacementCharacters) {
  const auto json = parse_request_json(
      "{\"messages\":[{\"content\":\"a\xFF\\ud800\"},{\"content\":[{\"text\":\"\xC3\"}]}]}",
      1 << 20);
  ASSERT_FALSE(json.error) << json.error->message;
  const Json& messages = json.object["messages"];
  EXPECT_EQ(messages[0]["content"], "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(messages[1]["content"][0]["text"], "\xEF\xBF\xBD");
  const auto other = parse_request_json("{\"messages\":[],\"stop\":[\"\xFF\"]}", 1 << 20);
  ASSERT_TRUE(other.error);
  EXPECT_EQ(other.error->param, "stop");
}

}  // namespace
}  // namespace fathom::server
