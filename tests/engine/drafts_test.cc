// Drafts change how soon an answer is there, and nothing else.
#include "engine/drafts.h"

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/fake_model.h"
#include "tests/engine/recording_sink.h"
#include "text/chat.h"

namespace fathom {
namespace {

using fathom::testing::Fake;
using fathom::testing::FakeScript;
using fathom::testing::RecordingSink;

constexpr int64_t kBlock = 5;

struct Answer {
  std::string content, reasoning, error;
  AnswerSummary summary;
  std::vector<TokenReport> reports;
  std::shared_ptr<FakeScript> script;
  std::vector<DraftTally> tallies;
};

using Change = std::function<void(FakeScript&, AnswerRequest&)>;

AnswerRequest request_of(const Engine& engine, const std::string& user, bool thinking) {
  text::ChatMessage message;
  message.content.push_back(text::ContentPart::of_text(user));
  text::ChatOptions options;
  options.thinking = thinking;
  const LoadedModel& loaded = engine.loaded();
  const auto rendered = text::render_chat(*loaded.profile, {&message, 1}, options);
  AnswerRequest request;
  request.prompt = text::encode_prompt(*loaded.tokenizer, loaded.markers, *rendered)->ids;
  request.starts_in_reasoning = rendered->starts_in_reasoning;
  request.answer_tokens_max = 300;
  request.sampling.temperature = 0;
  return request;
}

// One answer of a model whose answers are known, with a drafter that is right where `right` says.
Answer answer(DraftWish wish, const std::function<bool(int64_t)>& right, const Change& change = {},
              bool thinking = false) {
  Fake fake = fathom::testing::make_fake(4096, false, kBlock);
  Answer out;
  out.script = fake.script;
  out.script->drafts_well = right;
  out.script->answer_of = [](const std::string& user) {
    return "You asked: " + user + ". The answer is a text of some length, with a STOP in it.";
  };
  Engine engine(std::move(fake.loaded), {});
  AnswerRequest request = request_of(engine, "what is this", thinking);
  request.drafts = wish;
  if (change) change(*out.script, request);
  auto sink = std::make_shared<RecordingSink>();
  engine.submit(std::move(*engine.reserve()), request, sink);
  const auto summary = sink->wait();
  out.content = sink->content();
  out.reasoning = sink->reasoning();
  out.reports = sink->reports();
  if (summary)
    out.summary = *summary;
  else
    out.error = summary.status().message();
  out.tallies = engine.draft_tallies();
  return out;
}

bool always(int64_t) {
  return true;
}
bool never(int64_t) {
  return false;
}
bool two_of_three(int64_t position) {
  return position % 3 != 0;
}

void expect_same(const Answer& drafted, const Answer& plain) {
  EXPECT_EQ(drafted.error, plain.error);
  EXPECT_EQ(drafted.content, plain.content);
  EXPECT_EQ(drafted.reasoning, plain.reasoning);
  EXPECT_EQ(drafted.summary.reason, plain.summary.reason);
  EXPECT_EQ(drafted.summary.stop_string, plain.summary.stop_string);
  EXPECT_EQ(drafted.summary.usage.completion_tokens, plain.summary.usage.completion_tokens);
  EXPECT_EQ(drafted.summary.usage.reasoning_tokens, plain.summary.usage.reasoning_tokens);
  ASSERT_EQ(drafted.reports.size(), plain.reports.size());
  for (size_t i = 0; i < plain.reports.size(); ++i) {
    EXPECT_EQ(drafted.reports[i].chosen.token, plain.reports[i].chosen.token);
    EXPECT_EQ(drafted.reports[i].chosen.logprob, plain.reports[i].chosen.logprob);
    EXPECT_EQ(drafted.reports[i].top.size(), plain.reports[i].top.size());
  }
}

TEST(Drafts, FewerStepsForTheSameAnswer) {
  const Answer plain = answer({0}, always);
  const Answer drafted = answer({kBlock}, always);
  expect_same(drafted, plain);
  EXPECT_EQ(plain.script->draft_count, 0);
  EXPECT_EQ(plain.script->forward_count, plain.summary.usage.completion_tokens)
      << "one for the prompt; the end of the turn is not run";
  EXPECT_LE(drafted.script->forward_count, 2 + plain.summary.usage.completion_tokens / 6);
}

struct Case {
  const char* name;
  Change change;
  bool thinking = false;
};

class DraftsChangeNothing : public ::testing::TestWithParam<Case> {};

TEST_P(DraftsChangeNothing, WhateverIsGuessed) {
  const Case& c = GetParam();
  const Answer plain = answer({0}, always, c.change, c.thinking);
  for (const auto& right : {always, never, two_of_three})
    for (const int64_t count : {int64_t{1}, int64_t{2}, kBlock, DraftWish::kAuto})
      expect_same(answer({count}, right, c.change, c.thinking), plain);
}

INSTANTIATE_TEST_SUITE_P(
    Answers, DraftsChangeNothing,
    ::testing::Values(
        Case{"Plain", nullptr}, Case{"Thinking", nullptr, true},
        Case{"StopStringInsideARun",
             [](FakeScript&, AnswerRequest& r) { r.stop_strings = {"th a ST"}; }},
        Case{"LengthInsideARun", [](FakeScript&, AnswerRequest& r) { r.answer_tokens_max = 23; }},
        Case{"OneToken", [](FakeScript&, AnswerRequest& r) { r.answer_tokens_max = 1; }},
        Case{"StopTokenInsideARun", [](FakeScript&, AnswerRequest& r) { r.stop_tokens = {','}; }},
        Case{"EndOfTurnHeldBack",
             [](FakeScript&, AnswerRequest& r) {
               r.ignores_end_of_turn = true;
               r.answer_tokens_max = 120;
             }},
        Case{"TokensAtLeast",
             [](FakeScript&, AnswerRequest& r) {
               r.answer_tokens_min = 90;
               r.answer_tokens_max = 95;
             }},
        Case{"Logprobs",
             [](FakeScript&, AnswerRequest& r) {
               r.wants_logprobs = true;
               r.top_logprobs = 3;
             }},
        Case{"Penalties",
             [](FakeScript& script, AnswerRequest& r) {
               script.is_flat = true;
               r.sampling.frequency_penalty = 0.5;
               r.sampling.presence_penalty = 0.3;
               r.sampling.repetition_penalty = 1.3;
               r.sampling.repeat_last_n = 7;
               r.answer_tokens_max = 60;
             }},
        Case{"Bias",
             [](FakeScript&, AnswerRequest& r) {
               r.sampling.logit_bias = {{'e', -100.f}, {'!', 58.f}};
             }},
        Case{"ModelFails", [](FakeScript& script, AnswerRequest&) { script.nan_at = 60; }}),
    [](const auto& info) { return info.param.name; });

TEST(Drafts, AFailingDraftPassEndsDraftingAndNotTheAnswer) {
  const Answer plain = answer({0}, always);
  const Answer drafted = answer({kBlock}, always, [](FakeScript& script, AnswerRequest& r) {
    script.draft_fails_at = static_cast<int64_t>(r.prompt.size()) + 12;
  });
  expect_same(drafted, plain);
  EXPECT_EQ(drafted.script->draft_count, 3) << "two of six tokens each, and the one that failed";
}

TEST(Drafts, AValueThatIsNotFiniteBehindARejectedDraftIsNotLookedAt) {
  const Answer plain = answer({0}, always);
  const Answer drafted = answer({kBlock}, never, [](FakeScript& script, AnswerRequest& r) {
    // The row of the last of five wrong drafts in the first step.
    script.nan_at = static_cast<int64_t>(r.prompt.size()) + kBlock;
    script.answer_of = [](const std::string&) { return "abc"; };
  });
  EXPECT_EQ(drafted.error, "");
  EXPECT_EQ(drafted.content, "abc");
  EXPECT_NE(plain.content, drafted.content);
}

TEST(Drafts, ASeedRepeatsADrawnAnswer) {
  const Change drawn = [](FakeScript& script, AnswerRequest& r) {
    script.is_flat = true;
    r.sampling.temperature = 0.9;
    r.sampling.seed = 77;
    r.answer_tokens_max = 200;
  };
  const Answer first = answer({}, always, drawn), second = answer({}, always, drawn);
  EXPECT_GT(first.script->draft_count, 0);
  expect_same(second, first);
}

TEST(Drafts, AreCountedByPlace) {
  const Answer drafted = answer({3}, [](int64_t position) { return position % 4 != 0; });
  ASSERT_EQ(drafted.tallies.size(), static_cast<size_t>(kBlock));
  int64_t judged = 0, accepted = 0;
  for (size_t i = 0; i < drafted.tallies.size(); ++i) {
    EXPECT_EQ(drafted.tallies[i].judged, drafted.summary.drafts[i].judged);
    EXPECT_LE(drafted.tallies[i].accepted, drafted.tallies[i].judged);
    if (i > 0) {
      EXPECT_LE(drafted.tallies[i].judged, drafted.tallies[i - 1].accepted);
    }
    judged += drafted.tallies[i].judged;
    accepted += drafted.tallies[i].accepted;
  }
  EXPECT_EQ(drafted.tallies[3].judged, 0);
  EXPECT_GT(accepted, 0);
  EXPECT_GT(judged, accepted);
  // Every forward gives one token and those accepted, but nothing follows the end of the turn,
  // which was a draft here.
  EXPECT_EQ(drafted.script->forward_count + accepted, drafted.summary.usage.completion_tokens + 1);
}

TEST(Drafts, TheNextTurnGoesOnFromTheSettledState) {
  Fake fake = fathom::testing::make_fake(4096, false, kBlock);
  fake.script->drafts_well = two_of_three;
  Engine engine(std::move(fake.loaded), {});
  AnswerRequest request = request_of(engine, "first", false);
  request.stop_strings = {"said"};  // in the middle of a run
  auto sink = std::make_shared<RecordingSink>();
  engine.submit(std::move(*engine.reserve()), request, sink);
  const auto first = sink->wait();
  ASSERT_TRUE(first.is_ok());
  AnswerRequest next = request;
  const auto answer =
      *engine.loaded().tokenizer->encode("You said: ok", text::AddedTokens::kIgnore);
  next.prompt.insert(next.prompt.end(), answer.begin(), answer.end());
  sink = std::make_shared<RecordingSink>();
  engine.submit(std::move(*engine.reserve()), next, sink);
  const auto second = sink->wait();
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(second->usage.cached_tokens,
            first->usage.prompt_tokens + first->usage.completion_tokens - 1);
}

}  // namespace
}  // namespace fathom
