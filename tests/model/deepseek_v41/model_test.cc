#include "model/deepseek_v41/model.h"

#include <algorithm>
#include <cmath>

#include "memory/available_memory.h"
#include "model/deepseek_v41/state.h"
#include "tests/model/deepseek_v41/tiny_model.h"

namespace fathom::v41 {
namespace {

struct Fixture {
  std::vector<TokenId> ids;
  std::vector<float> smooth;  // [n, V]
};

Fixture read_prefill(const std::string& path) {
  auto file = SafetensorsFile::open(golden_path(path));
  EXPECT_TRUE(file.is_ok()) << file.status().message();
  const auto ids = (*file)->span_of<int32_t>("ids", DType::kI32);
  const auto smooth = (*file)->span_of<float>("logits_smooth", DType::kF32);
  EXPECT_TRUE(ids.is_ok() && smooth.is_ok());
  return {{ids->begin(), ids->end()}, {smooth->begin(), smooth->end()}};
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::isfinite(a[i]) ? std::max(worst, std::abs(a[i] - b[i])) : INFINITY;
  return worst;
}

// smooth is a smooth function, so a difference above 1e-4 is a mistake (golden README).
TEST(Model, AgreesWithTheOfficialCodeWithoutRoundings) {
  ThreadPool pool(2);
  for (const char* path :
       {"v41-tiny/prefill-n001", "v41-tiny/prefill-n097", "v41-wide/prefill-n130"}) {
    const Fixture fixture = read_prefill(std::string(path) + ".safetensors");
    const auto checkpoint = open_golden(std::string(path).substr(0, 8));
    for (const kernels::Isa isa : kernels::available_isas()) {
      const auto model = make_model(checkpoint, pool, {.policy = "smooth", .isa = isa});
      EXPECT_LE(largest_difference(run_alone(*model, fixture.ids), fixture.smooth), 1e-4F)
          << path << " on " << kernels::isa_name(isa);
    }
  }
}

class ModelLimits : public ::testing::Test {
 protected:
  ThreadPool pool_{1};
  std::shared_ptr<Checkpoint> checkpoint_ = open_golden("v41-tiny");
  std::unique_ptr<Model> model_ = make_model(checkpoint_, pool_, {});

  Status run(SequenceState& state, std::span<const InputToken> tokens, int64_t logits_from,
             const CancelFlag* cancel = nullptr) {
    const SequenceRows rows = {.state = &state, .tokens = tokens, .logits_from = logits_from};
    std::vector<float> logits;
    return model_->forward(std::span(&rows, 1), cancel, &logits);
  }
};

TEST_F(ModelLimits, ASequenceHoldsWhatItWasMadeFor) {
  auto state = model_->new_sequence(4);
  ASSERT_TRUE(state.is_ok());
  EXPECT_TRUE(run(**state, std::vector<InputToken>(4), 0).is_ok());
  EXPECT_EQ((*state)->token_count(), 4);
  EXPECT_EQ(run(**state, std::vector<InputToken>(1), 0).code(), Code::kResourceExhausted);
  EXPECT_EQ(model_->new_sequence(257).status().code(), Code::kInvalidArgument);  // context: 256
  EXPECT_EQ(model_->new_sequence(0).status().code(), Code::kInvalidArgument);
}

// Each cache alone fits, so the allocations succeed; together they are more than the machine has.
TEST_F(ModelLimits, ASequenceBeyondTheFreeMemoryIsRefused) {
  Config config = checkpoint_->config();
  config.text.max_position_embeddings = int64_t{1} << 40;
  const auto model = make_model(checkpoint_, pool_, {.config = config});
  const auto bytes_of = [&](int64_t tokens) {
    return static_cast<State&>(**model->new_sequence(tokens)).bytes_max();
  };
  const int64_t bytes_per_token = (bytes_of(3000) - bytes_of(1000)) / 2000;
  const auto state = model->new_sequence(available_memory_bytes() / bytes_per_token * 3 / 2);
  ASSERT_EQ(state.status().code(), Code::kResourceExhausted);
  EXPECT_NE(state.status().message().find("use a shorter context"), std::string::npos);
}

TEST_F(ModelLimits, TokensOutsideTheVocabularyAreRefused) {
  auto state = model_->new_sequence(4);
  ASSERT_TRUE(state.is_ok());
  for (const TokenId token : {-1, 512}) {
    const std::vector<InputToken> tokens = {{.token = token}};
    EXPECT_EQ(run(**state, tokens, 0).code(), Code::kInvalidArgument) << token;
  }
}

TEST_F(ModelLimits, LogitsCannotBeWantedFromBeforeWhatWasPromised) {
  auto state = model_->new_sequence(8);
  ASSERT_TRUE(state.is_ok());
  ASSERT_TRUE(run(**state, std::vector<InputToken>(4), 7).is_ok());
  EXPECT_EQ(run(**state, std::vector<InputToken>(1), 4).code(), Code::kInvalidArgument);
  EXPECT_TRUE(run(**state, std::vector<InputToken>(4), 7).is_ok());
}

TEST_F(ModelLimits, ARaisedFlagStopsTheStep) {
  auto state = model_->new_sequence(8);
  ASSERT_TRUE(state.is_ok());
  const CancelFlag cancel = true;
  EXPECT_EQ(run(**state, std::vector<InputToken>(4), 0, &cancel).code(), Code::kCancelled);
}

TEST_F(ModelLimits, ATokenMapThatDoesNotFitIsRefused) {
  ModelOptions options;
  options.token_map = {0, 1, 300};  // 256 compressed ids in the config
  EXPECT_EQ(Model::create(checkpoint_, pool_, options).status().code(), Code::kInvalidArgument);
  options.token_map = {};
  EXPECT_EQ(Model::create(checkpoint_, pool_, options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace fathom::v41
