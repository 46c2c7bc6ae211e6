#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/fake_model.h"
#include "tests/engine/recording_sink.h"
#include "text/chat.h"

namespace fathom {
namespace {

using namespace std::chrono_literals;
using fathom::testing::Fake;
using fathom::testing::FakeScript;
using fathom::testing::RecordingSink;
using Clock = std::chrono::steady_clock;

// Everything holds without a drafter and with one, whose guesses are right two times in three.
class EngineTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void start(EngineOptions options = {}, int64_t context_tokens = 4096) {
    Fake fake = fathom::testing::make_fake(context_tokens, true, GetParam());
    script_ = fake.script;
    script_->drafts_well = [](int64_t position) { return position % 3 != 0; };
    engine_ = std::make_unique<Engine>(std::move(fake.loaded), options);
  }

  AnswerRequest request(const std::string& user, bool thinking = false) const {
    text::ChatMessage message;
    message.content.push_back(text::ContentPart::of_text(user));
    text::ChatOptions options;
    options.thinking = thinking;
    const LoadedModel& loaded = engine_->loaded();
    const auto rendered = text::render_chat(*loaded.profile, {&message, 1}, options);
    const auto prompt = text::encode_prompt(*loaded.tokenizer, loaded.markers, *rendered);
    AnswerRequest request;
    request.id = user.substr(0, 20);
    request.prompt = prompt->ids;
    request.starts_in_reasoning = rendered->starts_in_reasoning;
    request.answer_tokens_max = 1000;
    request.sampling.temperature = 0;
    return request;
  }

  std::shared_ptr<Engine::Job> submit(const AnswerRequest& request,
                                      const std::shared_ptr<RecordingSink>& sink) {
    auto place = engine_->reserve();
    FATHOM_CHECK(place.is_ok(), "{}", place.status().message());
    return engine_->submit(std::move(*place), request, sink);
  }

  std::shared_ptr<RecordingSink> answer(const AnswerRequest& request) {
    auto sink = std::make_shared<RecordingSink>();
    submit(request, sink);
    return sink;
  }

  std::shared_ptr<FakeScript> script_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(EngineTest, AnswersAndCounts) {
  start();
  const AnswerRequest question = request("hi");
  const auto sink = answer(question);
  const auto summary = sink->wait();
  ASSERT_TRUE(summary.is_ok()) << summary.status().message();
  EXPECT_EQ(sink->content(), "You said: hi");
  EXPECT_EQ(summary->reason, FinishReason::kStop);
  EXPECT_EQ(summary->usage.prompt_tokens, static_cast<int64_t>(question.prompt.size()));
  EXPECT_EQ(summary->usage.completion_tokens, 13) << "12 bytes and the end of the turn";
  EXPECT_EQ(summary->usage.cached_tokens, 0);
}

TEST_P(EngineTest, SplitsReasoningFromContent) {
  start();
  const auto sink = answer(request("hi", true));
  const auto summary = sink->wait();
  ASSERT_TRUE(summary.is_ok());
  EXPECT_EQ(sink->reasoning(), "The user said 2 bytes.");
  EXPECT_EQ(sink->content(), "You said: hi");
  EXPECT_EQ(summary->usage.reasoning_tokens, 23) << "22 letters and the closing mark";
}

TEST_P(EngineTest, StopsAtTheLimitInTheMiddleOfACharacter) {
  start();
  script_->answer_of = [](const std::string&) { return "ab\xF0\x9F\xA6\x80"; };
  AnswerRequest question = request("crab");
  question.answer_tokens_max = 3;
  const auto sink = answer(question);
  const auto summary = sink->wait();
  ASSERT_TRUE(summary.is_ok());
  EXPECT_EQ(summary->reason, FinishReason::kLength);
  EXPECT_EQ(summary->usage.completion_tokens, 3);
  EXPECT_EQ(sink->content(), "ab\xEF\xBF\xBD") << "the cut character shows as U+FFFD";
}

TEST_P(EngineTest, FindsStopStringsAcrossTokens) {
  start();
  script_->answer_of = [](const std::string&) { return "go on STOP never seen"; };
  AnswerRequest question = request("x");
  question.stop_strings = {"n STO"};
  const auto sink = answer(question);
  const auto summary = sink->wait();
  ASSERT_TRUE(summary.is_ok());
  EXPECT_EQ(sink->content(), "go o");
  EXPECT_EQ(summary->reason, FinishReason::kStop);
  EXPECT_EQ(summary->stop_string, "n STO");
}

TEST_P(EngineTest, StopStringsDoNotCutReasoning) {
  start();
  AnswerRequest question = request("hi", true);
  question.stop_strings = {"user", "said:"};
  const auto sink = answer(question);
  ASSERT_TRUE(sink->wait().is_ok());
  EXPECT_EQ(sink->reasoning(), "The user said 2 bytes.");
  EXPECT_EQ(sink->content(), "You ");
}

TEST_P(EngineTest, LogprobBytesJoinToTheText) {
  start();
  script_->answer_of = [](const std::string&) { return "the \xF0\x9F\xA6\x80 STOP x"; };
  AnswerRequest question = request("x", true);
  question.wants_logprobs = true;
  question.top_logprobs = 5;
  question.stop_strings = {"zzz"};
  const auto sink = answer(question);
  ASSERT_TRUE(sink->wait().is_ok());
  std::string joined;
  for (const TokenReport& report : sink->reports()) {
    joined += report.chosen.bytes;
    ASSERT_EQ(report.top.size(), 5u);
    double sum = 0;
    for (const TokenChoice& choice : report.top) sum += std::exp(choice.logprob);
    EXPECT_LE(sum, 1 + 1e-9);
    EXPECT_EQ(report.top[0].token, report.chosen.token) << "greedy";
  }
  EXPECT_EQ(joined, sink->content());
}

TEST_P(EngineTest, SameSeedSameAnswer) {
  start();
  script_->is_flat = true;
  AnswerRequest question = request("x");
  question.sampling.temperature = 1;
  question.sampling.seed = 42;
  question.answer_tokens_max = 40;
  const auto one = answer(question), two = answer(question);
  question.sampling.seed = 43;
  const auto other = answer(question);
  ASSERT_TRUE(one->wait().is_ok() && two->wait().is_ok() && other->wait().is_ok());
  EXPECT_EQ(one->content(), two->content());
  EXPECT_NE(one->content(), other->content());
}

TEST_P(EngineTest, ChunksDoNotChangeTheAnswer) {
  for (int64_t chunk : {1, 7, 512}) {
    start({.prefill_chunk_tokens = chunk});
    const auto sink = answer(request("hello there"));
    ASSERT_TRUE(sink->wait().is_ok());
    EXPECT_EQ(sink->content(), "You said: hello there") << "chunks of " << chunk;
  }
}

TEST_P(EngineTest, AFullContextEndsTheAnswer) {
  start({}, 64);
  script_->never_ends = true;
  AnswerRequest question = request("x");
  const auto prompt_count = static_cast<int64_t>(question.prompt.size());
  const auto sink = answer(question);
  const auto summary = sink->wait();
  ASSERT_TRUE(summary.is_ok());
  EXPECT_EQ(summary->reason, FinishReason::kLength);
  EXPECT_EQ(summary->usage.completion_tokens, 64 - prompt_count);
}

TEST_P(EngineTest, AFaultEndsOneRequestAndNotTheEngine) {
  start();
  script_->fails_at = 3;
  const auto failed = answer(request("x"));
  EXPECT_EQ(failed->wait().status().code(), Code::kInternal);
  EXPECT_THAT(failed->wait().status().message(), ::testing::HasSubstr("layer 3"));
  script_->fails_at = -1;
  script_->nan_at = 6;
  EXPECT_EQ(answer(request("x"))->wait().status().code(), Code::kInternal);
  script_->nan_at = -1;
  EXPECT_TRUE(answer(request("x"))->wait().is_ok());
}

TEST_P(EngineTest, TheQueueIsBounded) {
  start({.queue_max = 2});
  script_->never_ends = true;
  script_->forward_ms = 5;
  std::vector<std::shared_ptr<RecordingSink>> sinks(3);
  for (auto& sink : sinks) {
    sink = std::make_shared<RecordingSink>();
    submit(request("x"), sink);
  }
  const auto refused = engine_->reserve();
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_GE(engine_->retry_after_s(), 1);
  EXPECT_LE(engine_->retry_after_s(), 60);
  engine_->cancel_all();
  for (auto& sink : sinks) EXPECT_EQ(sink->wait().status().code(), Code::kCancelled);
  EXPECT_TRUE(engine_->wait_until_idle(5000ms));
  EXPECT_TRUE(engine_->reserve().is_ok());
}

TEST_P(EngineTest, APlaceIsFreeAgainWhenNotUsed) {
  start({.queue_max = 0});
  {
    auto place = engine_->reserve();
    ASSERT_TRUE(place.is_ok());
    EXPECT_FALSE(engine_->reserve().is_ok());
  }
  EXPECT_TRUE(engine_->reserve().is_ok());
}

TEST_P(EngineTest, CancelFreesAWaitingRequestAtOnce) {
  start();
  script_->never_ends = true;
  script_->forward_ms = 5;
  const auto first = std::make_shared<RecordingSink>(), second = std::make_shared<RecordingSink>();
  const auto running = submit(request("x"), first);
  const auto waiting = submit(request("y"), second);
  engine_->cancel(waiting);
  EXPECT_EQ(second->wait().status().code(), Code::kCancelled);
  engine_->cancel(waiting);  // again changes nothing
  EXPECT_EQ(second->end_count(), 1);
  engine_->cancel(running);
  EXPECT_EQ(first->wait().status().code(), Code::kCancelled);
}

TEST_P(EngineTest, CancelEndsPrefillAndTheRetryGoesOnFromThere) {
  start({.prefill_chunk_tokens = 16});
  script_->forward_ms = 50;
  const AnswerRequest question = request(std::string(400, 'x'));
  const auto sink = std::make_shared<RecordingSink>();
  const auto job = submit(question, sink);
  sink->wait_for_prefill();
  engine_->cancel(job);
  EXPECT_EQ(sink->wait().status().code(), Code::kCancelled);
  EXPECT_LT(sink->prefill().back(), 400);
  script_->forward_ms = 0;
  const auto retry = answer(question);
  const auto summary = retry->wait();
  ASSERT_TRUE(summary.is_ok());
  EXPECT_GE(summary->usage.cached_tokens, 16);
}

TEST_P(EngineTest, CancelBreaksALongStepOff) {
  start();
  script_->forward_ms = 60'000;
  const auto sink = std::make_shared<RecordingSink>();
  const auto job = submit(request("x"), sink);
  while (script_->forward_count == 0) std::this_thread::sleep_for(1ms);
  engine_->cancel(job);
  EXPECT_EQ(sink->wait().status().code(), Code::kCancelled);
  EXPECT_TRUE(engine_->wait_until_idle(1000ms));
  EXPECT_EQ(script_->sequences_alive, 0) << "a broken-off state is not kept";
}

TEST_P(EngineTest, TheNextTurnReusesTheState) {
  start();
  const AnswerRequest first = request("hello");
  ASSERT_TRUE(answer(first)->wait().is_ok());
  AnswerRequest second = first;  // the prompt, the answer without its end, and some more
  const auto said =
      *engine_->loaded().tokenizer->encode("You said: hello", text::AddedTokens::kIgnore);
  second.prompt.insert(second.prompt.end(), said.begin(), said.end());
  second.prompt.push_back(engine_->loaded().markers.eos);
  const AnswerRequest other = request("more");
  second.prompt.insert(second.prompt.end(), other.prompt.begin() + 1, other.prompt.end());
  const auto sink = answer(second);
  const auto summary = sink->wait();
  ASSERT_TRUE(summary.is_ok());
  EXPECT_EQ(sink->content(), "You said: more");
  EXPECT_EQ(summary->usage.cached_tokens, static_cast<int64_t>(first.prompt.size() + said.size()));

  second.may_reuse_prefix = false;
  EXPECT_EQ(answer(second)->wait()->usage.cached_tokens, 0);
}

TEST_P(EngineTest, AnotherPictureInTheSamePlaceIsNotReused) {
  start();
  AnswerRequest question = request("look");
  const TokenId image = engine_->loaded().markers.image;
  question.prompt.insert(question.prompt.begin() + 2, image);
  question.picture_positions = {2};
  question.pictures = {{RgbImage{64, 64, std::vector<uint8_t>(64 * 64 * 3)}, 7, "picture one"}};
  auto summary = answer(question)->wait();
  ASSERT_TRUE(summary.is_ok()) << summary.status().message();
  EXPECT_EQ(summary->usage.image_tokens, 7);
  EXPECT_EQ(summary->usage.prompt_tokens, static_cast<int64_t>(question.prompt.size()) + 6);

  AnswerRequest more = question;
  for (char c : std::string("You said: look")) more.prompt.push_back(static_cast<uint8_t>(c));
  for (TokenId token : request("next").prompt) more.prompt.push_back(token);
  AnswerRequest changed = more;
  changed.pictures[0].content_id = "picture two";
  EXPECT_EQ(answer(changed)->wait()->usage.cached_tokens, 0);
}

TEST_P(EngineTest, ASmallerStateServesWhenTheWholeContextDoesNotFit) {
  start();
  script_->sequence_tokens_max = 100;
  AnswerRequest question = request("x");
  question.answer_tokens_max = 20;
  EXPECT_TRUE(answer(question)->wait().is_ok());
  question.answer_tokens_max = 1000;
  EXPECT_EQ(answer(question)->wait().status().code(), Code::kResourceExhausted);
}

TEST_P(EngineTest, ARequestThatWaitsTooLongEnds) {
  start({.queue_timeout = 200ms});
  script_->never_ends = true;
  script_->forward_ms = 5;
  const auto first = std::make_shared<RecordingSink>(), second = std::make_shared<RecordingSink>();
  const auto running = submit(request("x"), first);
  submit(request("y"), second);
  EXPECT_EQ(second->wait().status().code(), Code::kDeadlineExceeded);
  engine_->cancel(running);
  EXPECT_EQ(first->wait().status().code(), Code::kCancelled);
}

TEST_P(EngineTest, DrainingRefusesNewAndFinishesOld) {
  start();
  script_->forward_ms = 2;
  const auto sink = answer(request("x"));
  engine_->stop_admission();
  EXPECT_EQ(engine_->reserve().status().code(), Code::kUnavailable);
  EXPECT_TRUE(engine_->status().is_draining);
  EXPECT_TRUE(engine_->wait_until_idle(10'000ms));
  EXPECT_TRUE(sink->wait().is_ok());
}

TEST_P(EngineTest, SaysWhenNothingMoves) {
  start({.stall_after = 100ms});
  script_->forward_ms = 60'000;
  const auto sink = std::make_shared<RecordingSink>();
  const auto job = submit(request("x"), sink);
  while (!engine_->status().is_stalled) std::this_thread::sleep_for(10ms);
  engine_->cancel(job);
  EXPECT_FALSE(sink->wait().is_ok());
  EXPECT_TRUE(engine_->wait_until_idle(5000ms));
  EXPECT_FALSE(engine_->status().is_stalled);
}

TEST_P(EngineTest, DestructionEndsEveryRequest) {
  start();
  script_->never_ends = true;
  script_->forward_ms = 60'000;
  const auto first = answer(request("x")), second = answer(request("y"));
  engine_.reset();
  EXPECT_EQ(first->wait().status().code(), Code::kCancelled);
  EXPECT_EQ(second->wait().status().code(), Code::kCancelled);
  EXPECT_EQ(script_->sequences_alive, 0);
}

INSTANTIATE_TEST_SUITE_P(Drafts, EngineTest, ::testing::Values(0, 5),
                         [](const auto& info) { return info.param == 0 ? "None" : "Five"; });

}  // namespace
}  // namespace fathom
