#include "text/output_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/test_data.h"

namespace fathom::text {
namespace {

struct Answer {
  std::string reasoning, content, markup;
  bool has_tool_markup = false;

  bool operator==(const Answer&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << "reasoning [" << answer.reasoning << "] content [" << answer.content << "] markup ["
             << answer.markup << "] " << answer.has_tool_markup;
}

void collect(const std::vector<OutputEvent>& events, Answer* answer) {
  for (const OutputEvent& event : events) {
    EXPECT_FALSE(event.text.empty());
    EXPECT_TRUE(is_valid_utf8(event.text));
    switch (event.kind) {
      case OutputEvent::Kind::kReasoning:
        answer->reasoning += event.text;
        break;
      case OutputEvent::Kind::kContent:
        answer->content += event.text;
        break;
      case OutputEvent::Kind::kToolMarkup:
        answer->markup += event.text;
        break;
    }
  }
}

OutputParser parser(bool starts_in_reasoning) {
  const auto markers = find_markers(released_tokenizer(), **find_prompt_profile("v41"));
  return OutputParser(released_tokenizer(), *markers, starts_in_reasoning);
}

Answer parse_ids(const std::vector<TokenId>& ids, bool starts_in_reasoning) {
  Answer answer;
  OutputParser output = parser(starts_in_reasoning);
  for (const TokenId id : ids) collect(output.push(id), &answer);
  collect(output.finish(), &answer);
  answer.has_tool_markup = output.has_tool_markup();
  return answer;
}

// `text` as the model samples it, and with all that is no added token in single bytes: where tokens
// end must not matter.
Answer parse(const std::string& text, bool starts_in_reasoning) {
  const Tokenizer& tokenizer = released_tokenizer();
  const auto ids = *tokenizer.encode(text, AddedTokens::kMatch);
  const Answer answer = parse_ids(ids, starts_in_reasoning);
  std::vector<TokenId> small;
  for (const TokenId id : ids) {
    if (tokenizer.is_added(id)) {
      small.push_back(id);
    } else {
      for (const char byte : tokenizer.token_bytes(id))
        small.push_back((*tokenizer.encode({&byte, 1}, AddedTokens::kIgnore))[0]);
    }
  }
  EXPECT_EQ(parse_ids(small, starts_in_reasoning), answer) << "in single bytes";
  return answer;
}

const std::string kBlock =
    "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_pages\">\n"
    "<｜DSML｜ parameter name=\"pages\" string=\"true\">3-5</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
const std::string kEnd(kEos);

Answer text_only(std::string reasoning, std::string content) {
  return {std::move(reasoning), std::move(content), "", false};
}

// Example E16 of the prompt specification.
TEST(OutputParser, ParsesTheWorkedExample) {
  EXPECT_EQ(parse("Both known.</think>Brest 6.1 m, Cork 3.9 m." + kEnd, true),
            text_only("Both known.", "Brest 6.1 m, Cork 3.9 m."));
  const std::string block =
      "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_tide\">\n<｜DSML｜ parameter name=\"harbour\" "
      "string=\"true\">Saint \"M\"</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  EXPECT_EQ(parse("</think>\n\n" + block + kEnd, true), (Answer{"", "", "\n\n" + block, true}));
}

TEST(OutputParser, SplitsOnlyAtTheModelsOwnMark) {
  const Tokenizer& tokenizer = released_tokenizer();
  auto ids = *tokenizer.encode("say </think> and ｜DSML｜ and <think>", AddedTokens::kIgnore);
  EXPECT_EQ(parse_ids(ids, true), text_only("say </think> and ｜DSML｜ and <think>", ""));
  ids.push_back(128822);
  const auto more = *tokenizer.encode("x </think> y", AddedTokens::kIgnore);
  ids.insert(ids.end(), more.begin(), more.end());
  EXPECT_EQ(parse_ids(ids, true),
            text_only("say </think> and ｜DSML｜ and <think>", "x </think> y"));
}

TEST(OutputParser, SwallowsStrayMarks) {
  EXPECT_EQ(parse("a</think>b</think>c", false), text_only("", "abc"));
  EXPECT_EQ(parse("<think>a</think>b", true), text_only("a", "b"));
  EXPECT_EQ(parse("<think>a</think>b", false), text_only("a", "b"));
  EXPECT_EQ(parse("a</｜DSML｜ parameter>b</｜DSML｜ invoke>\n</｜DSML｜ calls>c", false),
            text_only("", "ab\nc"));
  EXPECT_EQ(parse("a\n<｜DSML｜ calls>\n</｜DSML｜ calls>b", false), text_only("", "ab"));
}

TEST(OutputParser, KeepsAThinkMarkInsideText) {
  EXPECT_EQ(parse("the tag <think> opens", false), text_only("", "the tag <think> opens"));
}

TEST(OutputParser, NeverShowsProtocolTokens) {
  EXPECT_EQ(
      parse(
          "a<｜User｜>b<｜System｜>c<｜▁pad▁｜><｜place▁holder▁no▁7｜><｜deepseek_image｜>d" + kEnd,
          false),
      text_only("", "abcd"));
}

TEST(OutputParser, GivesBackWhatOnlyLookedLikeATag) {
  for (const std::string text :
       {"a < b", "a <", "x</", "\n\n", "a\n\n<b>\n", "<｜DSML｜ nothing>", "</｜DSML｜ callsx>",
        "a ｜DSML｜ b", "<｜DSML｜>", "<\n｜DSML｜ calls>",
        "<｜｜DSML｜｜ calls>\n<｜｜DSML｜｜ invoke>"}) {
    EXPECT_EQ(parse(text, false), text_only("", text));
    EXPECT_EQ(parse(text + "</think>", true), text_only(text, ""));
  }
}

// Cases TOOL-1: markup is never an answer, whole, cut or misspelt.
TEST(OutputParser, ToolMarkupIsNeverContent) {
  std::string v4 = kBlock;
  for (const auto& [from, to] :
       {std::pair(" calls", "tool_calls"), std::pair("｜ invoke", "｜invoke"),
        std::pair("｜ parameter", "｜parameter")})
    for (size_t at = v4.find(from); at != std::string::npos; at = v4.find(from))
      v4.replace(at, std::string(from).size(), to);
  std::string function_calls = v4;
  function_calls.replace(function_calls.find("tool_calls"), 10, "function_calls");

  const size_t value = kBlock.find("3-5");
  for (const std::string& block :
       {kBlock, v4, function_calls, kBlock + "\n\n" + kBlock, kBlock + "\n\nDone.",
        kBlock.substr(0, kBlock.rfind("</")), kBlock.substr(0, value + 1),
        kBlock.substr(0, kBlock.find(" calls") + 3),
        kBlock.substr(kBlock.find("<｜DSML｜ invoke"))}) {
    EXPECT_EQ(parse("Reading.\n\n" + block, false), (Answer{"", "Reading.", "\n\n" + block, true}));
    EXPECT_EQ(parse(block, false), (Answer{"", "", block, true}));
  }
}

TEST(OutputParser, AModelMayCallWithoutClosingItsReasoning) {
  EXPECT_EQ(parse("I read on.\n\n" + kBlock + kEnd, true),
            (Answer{"I read on.", "", "\n\n" + kBlock, true}));
}

TEST(OutputParser, ACallQuotedInReasoningStaysReasoning) {
  const std::string quoted = "The form is " + kBlock + " but I need not.";
  EXPECT_EQ(parse(quoted + "</think>Fine.", true), text_only(quoted, "Fine."));
  EXPECT_EQ(parse("See:\n" + kBlock + "</think>Fine.", true),
            text_only("See:\n" + kBlock, "Fine."));
}

TEST(OutputParser, NeverSplitsACharacter) {
  const std::string text = "🦀👩‍🚀 é 你";
  EXPECT_EQ(parse(text + "</think>" + text, true), text_only(text, text));
}

// Half a character before the mark belongs to the reasoning, and its other half is no text.
TEST(OutputParser, AHalfCharacterEndsWithItsPart) {
  const Tokenizer& tokenizer = released_tokenizer();
  const auto byte = [&](char b) { return (*tokenizer.encode({&b, 1}, AddedTokens::kIgnore))[0]; };
  EXPECT_EQ(parse_ids({byte('\xE4'), byte('\xBD'), 128822, byte('\xA0'), byte('a')}, true),
            text_only("\xEF\xBF\xBD",
                      "\xEF\xBF\xBD"
                      "a"));
  EXPECT_EQ(parse_ids({byte('a'), byte('\xE4')}, false), text_only("", "a\xEF\xBF\xBD"));
}

TEST(OutputParser, SendsTextAsSoonAsItIsKnownToBeText) {
  OutputParser output = parser(false);
  const auto text_of = [&](std::string_view token) {
    const auto ids = *released_tokenizer().encode(token, AddedTokens::kIgnore);
    EXPECT_EQ(ids.size(), 1u) << token;
    std::string text;
    for (const OutputEvent& event : output.push(ids[0])) text += event.text;
    return text;
  };
  EXPECT_EQ(text_of("Hello"), "Hello");
  EXPECT_EQ(text_of("\n\n"), "");
  EXPECT_EQ(text_of("<"), "");
  EXPECT_EQ(text_of("b"), "\n\n<b");
}

}  // namespace
}  // namespace fathom::text
