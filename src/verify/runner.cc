#include "verify/runner.h"

#include <algorithm>

#include "io/read_file.h"
#include "text/engram_token_map.h"
#include "text/tokenizer.h"

namespace fathom::verify {

Result<Subject> open_subject(const std::string& directory, kernels::Isa isa, ThreadPool& pool) {
  Subject subject;
  FATHOM_ASSIGN(std::unique_ptr<v41::Checkpoint> checkpoint, v41::Checkpoint::open(directory));
  subject.checkpoint = std::move(checkpoint);
  subject.isa = isa;
  subject.pool = &pool;
  FATHOM_ASSIGN(subject.config_text, read_file(directory + "/config.json", v41::kConfigBytesMax));
  const v41::TextConfig& text = subject.checkpoint->config().text;
  if (text.engram_layer_ids.empty()) return subject;
  FATHOM_ASSIGN(const std::unique_ptr<text::Tokenizer> tokenizer,
                text::Tokenizer::load(subject.checkpoint->tokenizer_path()));
  FATHOM_ASSIGN(text::EngramTokenMap map,
                text::load_engram_token_map(*tokenizer, "", text.engram_compressed_vocab_size));
  subject.token_map = std::move(map.compressed_of);
  return subject;
}

Result<v41::Config> config_of(const Subject& subject, const GoldenCase& golden) {
  if (!golden.entry().contains("config_override")) return subject.checkpoint->config();
  FATHOM_ASSIGN(Json config, parse_json(subject.config_text));
  Json& text = config.contains("text_config") ? config["text_config"] : config;
  text.update(golden.entry()["config_override"]);
  return v41::parse_config(config.dump());
}

Result<Runner> Runner::create(const Subject& subject, const GoldenCase& golden,
                              const std::string& policy, Observer* observer,
                              int64_t token_count_max) {
  Runner runner;
  v41::ModelOptions options;
  options.policy = policy;
  options.isa = subject.isa;
  options.token_map = subject.token_map;
  options.observer = observer;
  // An observer sees the scores of a prefill as one tensor, however long it is.
  if (observer != nullptr) options.step_rows_max = token_count_max;
  FATHOM_ASSIGN(options.config, config_of(subject, golden));
  FATHOM_ASSIGN(runner.model_,
                v41::Model::create(subject.checkpoint, *subject.pool, std::move(options)));
  FATHOM_ASSIGN(runner.state_, runner.model_->new_sequence(token_count_max));
  return runner;
}

Result<std::vector<float>> Runner::run(std::span<const InputToken> tokens, int64_t chunk,
                                       int64_t logits_from) {
  std::vector<float> all;
  const auto step = static_cast<size_t>(
      chunk == 0 ? std::max<int64_t>(1, static_cast<int64_t>(tokens.size())) : chunk);
  for (size_t first = 0; first < tokens.size(); first += step) {
    const SequenceRows rows = {
        .state = state_.get(),
        .tokens = tokens.subspan(first, std::min(step, tokens.size() - first)),
        .logits_from = logits_from};
    std::vector<float> logits;
    FATHOM_TRY(model_->forward(std::span(&rows, 1), nullptr, &logits));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

Result<std::vector<float>> Runner::run(std::span<const TokenId> ids, int64_t chunk,
                                       int64_t logits_from) {
  std::vector<InputToken> tokens;
  for (const TokenId id : ids) tokens.push_back({.token = id});
  return run(tokens, chunk, logits_from);
}

}  // namespace fathom::verify
