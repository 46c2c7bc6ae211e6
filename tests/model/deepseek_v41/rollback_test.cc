// Topic: rejected drafts leave nothing behind (spec §8.2). A decode in steps of several rows, cut
// back after each by any count, gives the logits, the caches and the drafts of single steps, bit
// for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "model/deepseek_v41/state.h"
#include "tests/model/deepseek_v41/tiny_model.h"

namespace fathom::v41 {
namespace {

constexpr int64_t kPrompt = 61;
constexpr int64_t kEnd = 150;  // the windows wrap behind the prompt: 16, 64 and 80 rows

using Rows = std::vector<float>;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The demo model beside the golden ones. Any map of tokens to Engram ids serves a comparison of
// Fathom with itself.
std::shared_ptr<Checkpoint> open_model(const std::string& name) {
  if (name != "demo") return open_golden(name);
  auto checkpoint = Checkpoint::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo");
  EXPECT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  return checkpoint.is_ok() ? std::shared_ptr<Checkpoint>(std::move(checkpoint).value()) : nullptr;
}

std::unique_ptr<Model> make_any_model(const std::shared_ptr<Checkpoint>& checkpoint,
                                      ThreadPool& pool, ModelOptions options) {
  const TextConfig& config = checkpoint->config().text;
  for (int64_t id = 0; id < config.vocab_size; ++id)
    options.token_map.push_back(static_cast<int32_t>(id % config.engram_compressed_vocab_size));
  auto model = Model::create(checkpoint, pool, std::move(options));
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return model.is_ok() ? std::move(model).value() : nullptr;
}

std::vector<TokenId> random_ids() {
  std::mt19937 random(23);
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < kEnd; ++i) ids.push_back(static_cast<TokenId>(3 + random() % 497));
  return ids;
}

// What the drafter says behind the state's positions: logits of each place, then the confidence.
Rows draft_rows(Model& model, SequenceState& state, TokenId next) {
  Rows rows;
  const auto greedy = [&](const DraftOffer& offer) -> std::optional<TokenId> {
    rows.insert(rows.end(), offer.logits.begin(), offer.logits.end());
    rows.push_back(offer.confidence);
    return static_cast<TokenId>(std::max_element(offer.logits.begin(), offer.logits.end()) -
                                offer.logits.begin());
  };
  const Status status = model.draft(state, next, greedy, nullptr);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return rows;
}

// A decode of `ids` behind its prompt: logits of each position, and drafts where asked for.
struct Decode {
  std::unique_ptr<SequenceState> state;
  std::map<int64_t, Rows> logits;
  std::map<int64_t, Rows> drafts;  // by token count
};

Decode begin(Model& model, std::span<const TokenId> ids) {
  Decode out;
  auto state = model.new_sequence(kEnd + 9);
  EXPECT_TRUE(state.is_ok()) << state.status().message();
  out.state = std::move(*state);
  out.logits[kPrompt - 1] = run_ids(model, *out.state, ids.first(kPrompt), 0, kPrompt - 1);
  return out;
}

Decode run_plain(Model& model, std::span<const TokenId> ids) {
  Decode out = begin(model, ids);
  for (int64_t p = kPrompt; p < kEnd; ++p) {
    out.drafts[p] = draft_rows(model, *out.state, ids[static_cast<size_t>(p)]);
    out.logits[p] =
        run_ids(model, *out.state, ids.subspan(static_cast<size_t>(p), 1), 0, kPrompt - 1);
  }
  return out;
}

// Steps of the right token and `drafted` more, of which the first `accepted` are right.
struct Plan {
  int64_t drafted = 0;
  int64_t accepted = 0;
  bool asks_drafter = true;
};

template <typename NextPlan>
Decode run_with_drafts(Model& model, std::span<const TokenId> ids, const NextPlan& next_plan) {
  Decode out = begin(model, ids);
  for (int64_t p = kPrompt; p < kEnd;) {
    Plan plan = next_plan();
    plan.drafted = std::min(plan.drafted, kEnd - p - 1);
    plan.accepted = std::min(plan.accepted, plan.drafted);
    if (plan.asks_drafter)
      out.drafts[p] = draft_rows(model, *out.state, ids[static_cast<size_t>(p)]);
    std::vector<TokenId> step(ids.begin() + p, ids.begin() + p + 1 + plan.drafted);
    for (int64_t i = 1 + plan.accepted; i < std::ssize(step); ++i)
      step[static_cast<size_t>(i)] = (step[static_cast<size_t>(i)] + 7) % 500;
    const Rows rows = run_ids(model, *out.state, step, 0, kPrompt - 1);
    const int64_t vocab = model.info().vocab_count;
    EXPECT_EQ(std::ssize(rows), std::ssize(step) * vocab);
    const int64_t kept = 1 + plan.accepted;
    for (int64_t i = 0; i < kept; ++i)
      out.logits[p + i] = Rows(rows.begin() + i * vocab, rows.begin() + (i + 1) * vocab);
    const Status status = out.state->truncate(p + kept);
    EXPECT_TRUE(status.is_ok()) << status.message();
    p += kept;
  }
  return out;
}

void expect_same(const std::map<int64_t, Rows>& got, const std::map<int64_t, Rows>& want,
                 const char* what) {
  for (const auto& [position, rows] : got)
    EXPECT_TRUE(same_bits(rows, want.at(position))) << what << " at " << position;
}

std::vector<Rows> rows_of(const CacheRows& cache) {
  std::vector<Rows> out(static_cast<size_t>(cache.count()),
                        Rows(static_cast<size_t>(cache.view().cols)));
  for (size_t r = 0; r < out.size(); ++r) cache.read(static_cast<int64_t>(r), out[r]);
  return out;
}

// What later positions can see of two states that hold the same positions.
void expect_same_state(const Model& model, SequenceState& got, SequenceState& want) {
  auto& a = dynamic_cast<State&>(got);
  auto& b = dynamic_cast<State&>(want);
  const TextConfig& config = model.config().text;
  ASSERT_EQ(a.token_count(), b.token_count());
  const int64_t end = a.token_count();
  Rows row_a(static_cast<size_t>(config.head_dim)), row_b = row_a;
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    for (int64_t p = end - config.sliding_window + 1; p < end; ++p) {
      a.window(l).read(p, row_a);
      b.window(l).read(p, row_b);
      EXPECT_TRUE(same_bits(row_a, row_b)) << "window of layer " << l << " at " << p;
    }
    if (!layer_role(config, LayerId{l}).is_kv_source) continue;
    SourceState& source_a = a.source(l);
    SourceState& source_b = b.source(l);
    EXPECT_EQ(rows_of(source_a.compressed_kv), rows_of(source_b.compressed_kv)) << l;
    EXPECT_EQ(rows_of(source_a.index_k), rows_of(source_b.index_k)) << l;
    if (const int64_t pending = end % source_a.ratio; pending > 0) {
      EXPECT_TRUE(same_bits(source_a.k.newest(pending).row(0), source_b.k.newest(pending).row(0)));
      EXPECT_TRUE(same_bits(source_a.g.newest(pending).row(0), source_b.g.newest(pending).row(0)));
    }
  }
  const auto looked_back_on = static_cast<size_t>(config.engram_max_ngram_size - 1);
  ASSERT_GE(a.history().size(), looked_back_on);
  EXPECT_TRUE(std::equal(a.history().end() - static_cast<std::ptrdiff_t>(looked_back_on),
                         a.history().end(),
                         b.history().end() - static_cast<std::ptrdiff_t>(looked_back_on)));
}

class Rollback : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    checkpoint_ = open_model(GetParam());
    ASSERT_NE(checkpoint_, nullptr);
    model_ = make_any_model(checkpoint_, pool_, {.isa = kernels::available_isas().back()});
    plain_ = run_plain(*model_, ids_);
  }

  ThreadPool pool_{2};
  std::shared_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
  const std::vector<TokenId> ids_ = random_ids();
  Decode plain_;
};

TEST_P(Rollback, AfterEveryCountOfAcceptedDrafts) {
  const int64_t block = model_->info().draft_tokens_max;
  ASSERT_EQ(block, 5);
  for (int64_t drafted = 1; drafted <= block; ++drafted) {
    for (int64_t accepted = 0; accepted <= drafted; ++accepted) {
      const Decode decode = run_with_drafts(*model_, ids_, [&] {
        return Plan{drafted, accepted, accepted == 1};
      });
      expect_same(decode.logits, plain_.logits, "logits");
      expect_same(decode.drafts, plain_.drafts, "drafts");
      expect_same_state(*model_, *decode.state, *plain_.state);
    }
  }
}

TEST_P(Rollback, AtEveryPositionInAnyOrder) {
  std::mt19937 random(5);
  for (int run = 0; run < 6; ++run) {
    const Decode decode = run_with_drafts(*model_, ids_, [&] {
      const auto drafted = static_cast<int64_t>(random() % 6);
      return Plan{drafted, static_cast<int64_t>(random() % 6), random() % 3 == 0};
    });
    expect_same(decode.logits, plain_.logits, "logits");
    expect_same(decode.drafts, plain_.drafts, "drafts");
    expect_same_state(*model_, *decode.state, *plain_.state);
  }
}

TEST_P(Rollback, OnAnyThreadsAndKernels) {
  for (const kernels::Isa isa : kernels::available_isas()) {
    if (isa == kernels::Isa::kRef) continue;  // sums in double
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      const auto model = make_any_model(checkpoint_, pool, {.isa = isa});
      std::mt19937 random(9);
      const Decode decode = run_with_drafts(*model, ids_, [&] {
        return Plan{static_cast<int64_t>(random() % 6), static_cast<int64_t>(random() % 4), true};
      });
      expect_same(decode.logits, plain_.logits, "logits");
      expect_same(decode.drafts, plain_.drafts, "drafts");
    }
  }
}

TEST_P(Rollback, GoesNoFurtherBackThanTheLastStep) {
  EXPECT_EQ(plain_.state->truncate(kEnd + 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(plain_.state->truncate(kEnd - 2).code(), Code::kInvalidArgument);
  EXPECT_TRUE(plain_.state->truncate(kEnd - 1).is_ok());
  EXPECT_EQ(plain_.state->truncate(kEnd - 2).code(), Code::kInvalidArgument);
  run_ids(*model_, *plain_.state, std::span(ids_).first(9), 0, kEnd - 1);
  EXPECT_EQ(plain_.state->truncate(kEnd - 1).code(), Code::kInvalidArgument)
      << "nine rows are more than a step of drafts";
}

TEST_P(Rollback, ADraftThatWasBrokenOffChangesNothing) {
  Decode decode = begin(*model_, ids_);
  CancelFlag cancel{true};
  const auto none = [](const DraftOffer&) { return std::optional<TokenId>(); };
  EXPECT_EQ(model_->draft(*decode.state, 7, none, &cancel).code(), Code::kCancelled);
  EXPECT_TRUE(
      same_bits(draft_rows(*model_, *decode.state, ids_[kPrompt]), plain_.drafts.at(kPrompt)));
  EXPECT_TRUE(same_bits(
      run_ids(*model_, *decode.state, std::span(ids_).subspan(kPrompt, 1), 0, kPrompt - 1),
      plain_.logits.at(kPrompt)));
}

TEST_P(Rollback, DraftsAreTheSameHoweverThePromptWasCut) {
  for (const int64_t chunk : {1, 7, 40}) {
    auto state = model_->new_sequence(kEnd);
    ASSERT_TRUE(state.is_ok());
    run_ids(*model_, **state, std::span(ids_).first(kPrompt), chunk, kPrompt - 1);
    EXPECT_TRUE(same_bits(draft_rows(*model_, **state, ids_[kPrompt]), plain_.drafts.at(kPrompt)))
        << "pieces of " << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Rollback, ::testing::Values("v41-tiny", "v41-wide", "demo"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name == "demo" ? "Demo" : name == "v41-tiny" ? "Tiny" : "Wide";
                         });

}  // namespace
}  // namespace fathom::v41
