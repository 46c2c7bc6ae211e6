#include "bench/model_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/cold_files.h"
#include "bench/timing.h"
#include "engine/model_loader.h"
#include "model/deepseek_v41/checkpoint.h"
#include "model/deepseek_v41/inspect.h"
#include "model/deepseek_v41/vision_bench.h"

namespace fathom::bench {
namespace {

using Figures = std::vector<Figure>;

// Targets of the project's first issue, section 8.
constexpr double kVisionFactor = 1.8;
constexpr double kDecodeTarget = 0.65;
constexpr double kPrefillTarget = 0.40;
constexpr double kLongPrefillTarget = 0.8;
constexpr double kLoadTarget = 0.8;
constexpr double kFirstTokenFactor = 1.2;
constexpr double kTextMsMax = 150;
constexpr double kPictureMsMax = 1500;
constexpr double kVisionExtraMbMax = 600;

constexpr int64_t kDecodePrompt = 32;
constexpr int64_t kDecodeSteps = 24;

// What a token costs, from the shapes in the checkpoint.
struct TokenCost {
  double bytes = 0;            // weights that one decoded token reads
  double operations = 0;       // 2 a product with a weight, without the head
  double head_operations = 0;  // of a token whose logits are wanted
};

Result<TokenCost> token_cost(const std::string& directory) {
  FATHOM_ASSIGN(const auto checkpoint, v41::Checkpoint::open(directory));
  const v41::InspectReport report = v41::inspect_checkpoint(*checkpoint);
  const auto& text = checkpoint->config().text;
  const auto table = static_cast<double>(text.vocab_size * text.hidden_size);
  TokenCost cost;
  // Of the embedding (bf16) a token reads one row.
  cost.bytes =
      static_cast<double>(report.memory.dense + report.memory.experts_per_token) - 2 * table;
  cost.head_operations = 2 * table;
  cost.operations = 2 * static_cast<double>(report.active_parameters) - cost.head_operations;
  return cost;
}

Result<LoadedModel> load(const ModelBenchOptions& options, ThreadPool& pool) {
  LoadModelOptions wanted;
  wanted.directory = options.directory;
  wanted.isa = options.isa;
  wanted.needs_chat = false;
  return load_model(wanted, pool);
}

// Ids that any vocabulary has, without repeating early.
std::vector<InputToken> some_tokens(const LanguageModel& model, int64_t count) {
  std::vector<InputToken> tokens(static_cast<size_t>(count));
  uint64_t state = 1;
  for (InputToken& token : tokens) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    token.token =
        static_cast<TokenId>((state >> 33) % static_cast<uint64_t>(model.info().vocab_count / 2));
  }
  return tokens;
}

Result<TokenId> run_tokens(LanguageModel& model, SequenceState& state,
                           std::span<const InputToken> tokens) {
  const SequenceRows rows{
      .state = &state,
      .tokens = tokens,
      .logits_from = state.token_count() + static_cast<int64_t>(tokens.size()) - 1};
  std::vector<float> logits;
  FATHOM_TRY(model.forward({&rows, 1}, nullptr, &logits));
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Seconds of the fastest of `repeats` prefills of `count` tokens.
Result<double> prefill_seconds(LanguageModel& model, int64_t count, int repeats) {
  const std::vector<InputToken> tokens = some_tokens(model, count);
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    FATHOM_ASSIGN(const auto state, model.new_sequence(count));
    Status status;
    const double seconds = seconds_of([&] { status = run_tokens(model, *state, tokens).status(); });
    FATHOM_TRY(status);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace

Result<Figures> bench_vision(const kernels::Context& context, const Ceilings& ceilings) {
  FATHOM_ASSIGN(const v41::VisionBenchResult result, v41::run_vision_bench(context, {}));
  const double operations = result.linear_flop + result.attention_flop;
  const double bound = operations * 1e-9 / ceilings.bf16_gflop_s;
  return Figures{
      time_figure(fmt::format("vision {} patches, {} threads", result.patches, ceilings.threads),
                  result.seconds, "s", bound, kVisionFactor),
      rate_figure("vision rate", operations * 1e-9 / result.seconds, "GFLOP/s",
                  ceilings.bf16_gflop_s, 0),
      limit_figure("vision extra memory", static_cast<double>(result.extra_bytes_peak) * 1e-6, "MB",
                   kVisionExtraMbMax)};
}

Result<Figures> bench_load(const ModelBenchOptions& options, const Ceilings& ceilings) {
  const ColdFiles files(options.directory);
  FATHOM_ASSIGN(const double disk_seconds, files.read_seconds());
  FATHOM_TRY(files.drop_caches());
  ThreadPool pool(options.threads);
  Status status;
  double load_seconds = 0;
  const double first_seconds = seconds_of([&] {
    Result<LoadedModel> loaded = error(Code::kInternal, "not loaded");
    load_seconds = seconds_of([&] { loaded = load(options, pool); });
    status = loaded.status();
    if (!status) return;
    auto state = loaded->model->new_sequence(16);
    status = state.status();
    if (status)
      status = run_tokens(*loaded->model, **state, some_tokens(*loaded->model, 1)).status();
  });
  FATHOM_TRY(status);
  const double gigabytes = static_cast<double>(files.bytes()) * 1e-9;
  return Figures{
      rate_figure(fmt::format("load cold, {} threads", ceilings.threads), gigabytes / load_seconds,
                  "GB/s", gigabytes / disk_seconds, kLoadTarget),
      time_figure("load first token after", first_seconds, "s", disk_seconds, kFirstTokenFactor)};
}

Result<Figures> bench_decode(const ModelBenchOptions& options, const Ceilings& ceilings) {
  FATHOM_ASSIGN(const TokenCost cost, token_cost(options.directory));
  ThreadPool pool(options.threads);
  FATHOM_ASSIGN(LoadedModel loaded, load(options, pool));
  FATHOM_ASSIGN(const auto state, loaded.model->new_sequence(kDecodePrompt + kDecodeSteps + 1));
  FATHOM_ASSIGN(TokenId next,
                run_tokens(*loaded.model, *state, some_tokens(*loaded.model, kDecodePrompt)));
  // The median: which experts a step reads differs, so the best would be a step that repeats them.
  std::vector<double> seconds;
  for (int64_t i = 0; i < kDecodeSteps; ++i) {
    const InputToken token{.token = next};
    Status status;
    seconds.push_back(seconds_of([&] {
      auto result = run_tokens(*loaded.model, *state, {&token, 1});
      status = result.status();
      if (status) next = *result;
    }));
    FATHOM_TRY(status);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kDecodeSteps / 2, seconds.end());
  return Figures{rate_figure(
      fmt::format("decode, {:.2f} GB a token, {} threads", cost.bytes * 1e-9, ceilings.threads),
      1 / seconds[kDecodeSteps / 2], "tok/s", ceilings.read_gb_s / (cost.bytes * 1e-9),
      kDecodeTarget)};
}

Result<Figures> bench_prefill(const ModelBenchOptions& options, const Ceilings& ceilings) {
  FATHOM_ASSIGN(const TokenCost cost, token_cost(options.directory));
  ThreadPool pool(options.threads);
  FATHOM_ASSIGN(LoadedModel loaded, load(options, pool));
  constexpr int64_t kCount = 512;
  FATHOM_ASSIGN(const double seconds, prefill_seconds(*loaded.model, kCount, 3));
  const double operations = cost.operations * kCount + cost.head_operations;
  Figures figures{
      rate_figure(fmt::format("prefill {}, {} threads", kCount, ceilings.threads), kCount / seconds,
                  "tok/s", kCount / (operations * 1e-9 / ceilings.bf16_gflop_s), kPrefillTarget)};
  constexpr int64_t kShort = 1024;
  constexpr int64_t kLong = 8192;
  if (loaded.model->info().context_tokens_max < kLong) return figures;
  FATHOM_ASSIGN(const double short_seconds, prefill_seconds(*loaded.model, kShort, 1));
  FATHOM_ASSIGN(const double long_seconds, prefill_seconds(*loaded.model, kLong, 1));
  figures.push_back(rate_figure("prefill 8192 beside 1024", kLong / long_seconds, "tok/s",
                                kShort / short_seconds, kLongPrefillTarget));
  return figures;
}

Result<Figures> bench_first_token(const ModelBenchOptions& options) {
  ThreadPool pool(options.threads);
  FATHOM_ASSIGN(LoadedModel loaded, load(options, pool));
  LanguageModel& model = *loaded.model;
  FATHOM_ASSIGN(const double text_seconds, prefill_seconds(model, 100, 5));
  Figures figures{limit_figure("first-token text of 100", text_seconds * 1e3, "ms", kTextMsMax)};
  if (!model.info().has_vision) return figures;
  const RgbImage image{1554, 1078, std::vector<uint8_t>(1554 * 1078 * 3, 127)};
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    Status status;
    const double seconds = seconds_of([&] {
      auto picture = model.encode_picture(image, nullptr);
      status = picture.status();
      if (!status) return;
      std::vector<InputToken> tokens(static_cast<size_t>(picture->count));
      for (int64_t t = 0; t < picture->count; ++t)
        tokens[static_cast<size_t>(t)] = {
            .token = model.info().image_token,
            .embedding = picture->embeddings.data() + t * model.info().hidden_size};
      auto state = model.new_sequence(picture->count);
      status = state.status();
      if (status) status = run_tokens(model, **state, tokens).status();
    });
    FATHOM_TRY(status);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  figures.push_back(limit_figure("first-token picture 1554x1078", best * 1e3, "ms", kPictureMsMax));
  return figures;
}

}  // namespace fathom::bench
