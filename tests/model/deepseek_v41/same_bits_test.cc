// Topic: the same bits whatever the threads, the cutting of a prompt, the company in a step, what
// ran before, and the kernels (promise P2), in the `reference` policy.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/model/deepseek_v41/tiny_model.h"

namespace fathom::v41 {
namespace {

std::vector<TokenId> random_ids(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<TokenId>(3 + random() % 497));
  return ids;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr int64_t kVocab = 512;

class SameBits : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    checkpoint_ = open_golden(GetParam());
    ASSERT_NE(checkpoint_, nullptr);
    model_ = make_model(checkpoint_, pool_, {.isa = kernels::available_isas().back()});
    // Longer than both windows, odd, with several groups more than the top-k holds.
    ids_ = random_ids(145, 7);
    whole_ = run_alone(*model_, ids_);
  }

  ThreadPool pool_{2};
  std::shared_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
  std::vector<TokenId> ids_;
  std::vector<float> whole_;
};

TEST_P(SameBits, OnOneTwoAndThreeThreads) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const auto model = make_model(checkpoint_, pool, {.isa = kernels::available_isas().back()});
    EXPECT_TRUE(same_bits(run_alone(*model, ids_), whole_)) << threads << " threads";
  }
}

TEST_P(SameBits, ForAnyCuttingOfThePrompt) {
  for (const int64_t chunk : {1, 7, 16}) {
    EXPECT_TRUE(same_bits(run_alone(*model_, ids_, chunk), whole_)) << "pieces of " << chunk;
  }
}

TEST_P(SameBits, WhenTheModelItselfCutsAStep) {
  const auto model = make_model(checkpoint_, pool_,
                                {.isa = kernels::available_isas().back(), .step_rows_max = 13});
  EXPECT_TRUE(same_bits(run_alone(*model, ids_), whole_));
}

TEST_P(SameBits, InPrefillAndInDecode) {
  auto state = model_->new_sequence(145);
  ASSERT_TRUE(state.is_ok());
  std::vector<float> rows = run_ids(*model_, **state, std::span(ids_).first(101), 0, 0);
  const auto steps = run_ids(*model_, **state, std::span(ids_).subspan(101), 1, 0);
  rows.insert(rows.end(), steps.begin(), steps.end());
  EXPECT_TRUE(same_bits(rows, whole_));
}

TEST_P(SameBits, TrimmedAndUntrimmed) {
  const auto untrimmed = make_model(
      checkpoint_, pool_, {.isa = kernels::available_isas().back(), .trim_prefill = false});
  const std::span<const float> last = std::span(whole_).last(45 * kVocab);
  for (Model* model : {model_.get(), untrimmed.get()}) {
    for (const int64_t chunk : {0, 1, 7, 16}) {
      auto state = model->new_sequence(145);
      ASSERT_TRUE(state.is_ok());
      // The prompt's end is at 100; what follows are single steps, as a decode runs them.
      std::vector<float> rows = run_ids(*model, **state, std::span(ids_).first(101), chunk, 100);
      for (size_t p = 101; p < ids_.size(); ++p) {
        const auto row =
            run_ids(*model, **state, std::span(ids_).subspan(p, 1), 0, static_cast<int64_t>(p));
        rows.insert(rows.end(), row.begin(), row.end());
      }
      EXPECT_TRUE(same_bits(rows, last)) << "pieces of " << chunk;
    }
  }
}

TEST_P(SameBits, WhenAPromptGrowsInASecondTurn) {
  auto state = model_->new_sequence(145);
  ASSERT_TRUE(state.is_ok());
  run_ids(*model_, **state, std::span(ids_).first(60), 0, 59);
  const auto last = run_ids(*model_, **state, std::span(ids_).subspan(60), 0, 144);
  EXPECT_TRUE(same_bits(last, std::span(whole_).last(kVocab)));
}

TEST_P(SameBits, AfterAnotherRequestInTheSameProcess) {
  run_alone(*model_, random_ids(90, 11), 5);
  EXPECT_TRUE(same_bits(run_alone(*model_, ids_), whole_));
}

TEST_P(SameBits, WithAnotherSequenceInTheStep) {
  const std::vector<TokenId> other = random_ids(77, 5);
  const std::vector<float> other_alone = run_alone(*model_, other);
  auto a = model_->new_sequence(145);
  auto b = model_->new_sequence(77);
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  std::vector<InputToken> a_tokens;
  std::vector<InputToken> b_tokens;
  for (const TokenId id : ids_) a_tokens.push_back({.token = id});
  for (const TokenId id : other) b_tokens.push_back({.token = id});
  // Unequal pieces, so that the sequences are never at the same place; a is at its end first.
  std::vector<float> a_rows;
  std::vector<float> b_rows;
  const std::vector<std::pair<size_t, size_t>> pieces = {{50, 1}, {0, 30}, {94, 45}, {1, 1}};
  size_t a_at = 0;
  size_t b_at = 0;
  for (const auto& [a_count, b_count] : pieces) {
    const std::array<SequenceRows, 2> rows = {{
        {.state = a->get(), .tokens = std::span(a_tokens).subspan(a_at, a_count)},
        {.state = b->get(), .tokens = std::span(b_tokens).subspan(b_at, b_count)},
    }};
    std::vector<float> logits;
    const Status status = model_->forward(rows, nullptr, &logits);
    ASSERT_TRUE(status.is_ok()) << status.message();
    const auto split = logits.begin() + static_cast<ptrdiff_t>(a_count * kVocab);
    a_rows.insert(a_rows.end(), logits.begin(), split);
    b_rows.insert(b_rows.end(), split, logits.end());
    a_at += a_count;
    b_at += b_count;
  }
  EXPECT_TRUE(same_bits(a_rows, whole_));
  EXPECT_TRUE(same_bits(b_rows, other_alone));
}

// Both sequences trimmed in one step: rows leave from the middle of its matrices.
TEST_P(SameBits, WithAnotherSequenceInTheStepAndBothTrimmed) {
  const std::vector<TokenId> other = random_ids(133, 5);
  const std::vector<float> other_alone = run_alone(*model_, other);
  auto a = model_->new_sequence(145);
  auto b = model_->new_sequence(133);
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  std::vector<InputToken> a_tokens;
  std::vector<InputToken> b_tokens;
  for (const TokenId id : ids_) a_tokens.push_back({.token = id});
  for (const TokenId id : other) b_tokens.push_back({.token = id});
  const std::array<SequenceRows, 2> rows = {{
      {.state = a->get(), .tokens = a_tokens, .logits_from = 144},
      {.state = b->get(), .tokens = b_tokens, .logits_from = 130},
  }};
  std::vector<float> logits;
  const Status status = model_->forward(rows, nullptr, &logits);
  ASSERT_TRUE(status.is_ok()) << status.message();
  ASSERT_EQ(logits.size(), 4 * kVocab);
  EXPECT_TRUE(same_bits(std::span(logits).first(kVocab), std::span(whole_).last(kVocab)));
  EXPECT_TRUE(
      same_bits(std::span(logits).last(3 * kVocab), std::span(other_alone).last(3 * kVocab)));
}

TEST_P(SameBits, OnEveryIsaButTheReferenceKernels) {
  for (const kernels::Isa isa : kernels::available_isas()) {
    if (isa == kernels::Isa::kRef) continue;  // sums in double
    const auto model = make_model(checkpoint_, pool_, {.isa = isa});
    EXPECT_TRUE(same_bits(run_alone(*model, ids_), whole_)) << kernels::isa_name(isa);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, SameBits, ::testing::Values("v41-tiny", "v41-wide"),
                         [](const auto& info) { return std::string(info.param).substr(4); });

}  // namespace
}  // namespace fathom::v41
