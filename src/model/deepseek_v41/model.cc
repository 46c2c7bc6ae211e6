#include "model/deepseek_v41/model.h"

#include <algorithm>

#include "kernels/rope.h"
#include "memory/available_memory.h"
#include "model/deepseek_v41/draft_info.h"
#include "model/deepseek_v41/dspark.h"
#include "model/deepseek_v41/engram_multipliers.h"
#include "model/deepseek_v41/forward.h"
#include "model/deepseek_v41/state.h"
#include "model/deepseek_v41/vision.h"

namespace fathom::v41 {
namespace {

std::optional<kernels::Yarn> yarn(const TextConfig& config) {
  if (!config.rope_scaling) return std::nullopt;
  return kernels::Yarn{.factor = config.rope_scaling->factor,
                       .beta_fast = config.rope_scaling->beta_fast,
                       .beta_slow = config.rope_scaling->beta_slow,
                       .original_positions = config.rope_scaling->original_max_position_embeddings};
}

std::vector<EngramHashing> engram_hashing(const TextConfig& config,
                                          const std::vector<int32_t>& token_map) {
  std::vector<EngramHashing> layers;
  if (config.engram_layer_ids.empty()) return layers;
  const EngramPrimes primes = engram_primes(config);
  for (size_t i = 0; i < primes.size(); ++i) {
    EngramHashing layer;
    layer.heads = config.engram_n_heads;
    layer.pad_id = token_map[static_cast<size_t>(config.engram_pad_token_id)];
    for (const std::vector<int64_t>& order : primes[i])
      layer.primes.insert(layer.primes.end(), order.begin(), order.end());
    layer.multipliers = engram_multipliers(config.engram_layer_ids[i], config.engram_max_ngram_size,
                                           config.engram_compressed_vocab_size);
    layers.push_back(std::move(layer));
  }
  return layers;
}

Status check_token_map(const TextConfig& config, const std::vector<int32_t>& map) {
  if (config.engram_layer_ids.empty()) return Status::ok();
  if (map.size() > static_cast<size_t>(config.vocab_size) ||
      map.size() <= static_cast<size_t>(config.engram_pad_token_id))
    return error(Code::kInvalidArgument,
                 "the Engram token map has {} entries; it needs one for each token of the "
                 "tokenizer, more than {} and at most {}",
                 map.size(), config.engram_pad_token_id, config.vocab_size);
  for (const int32_t id : map)
    if (id < 0 || id >= config.engram_compressed_vocab_size)
      return error(Code::kInvalidArgument, "the Engram token map holds {}, ids are below {}", id,
                   config.engram_compressed_vocab_size);
  return Status::ok();
}

// Candidates are block numbers: they mean the same groups only where the ratio is the same.
Status check_candidates(const TextConfig& config) {
  if (config.candidate_source_layer_id < 0) return Status::ok();
  const LayerRole source = layer_role(config, LayerId{config.candidate_source_layer_id});
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    const LayerRole role = layer_role(config, LayerId{l});
    if (role.uses_candidates && role.ratio != source.ratio)
      return error(Code::kUnsupported,
                   "config: index source layer {} has compress ratio {}, the candidate source {} "
                   "has {}; candidates can only restrict layers of the same ratio",
                   l, role.ratio, config.candidate_source_layer_id, source.ratio);
  }
  return Status::ok();
}

ModelInfo make_info(const Config& config, const Weights& weights) {
  return {.architecture = "deepseek_v41",
          .vocab_count = config.text.vocab_size,
          .hidden_size = config.text.hidden_size,
          .context_tokens_max = config.text.max_position_embeddings,
          .bos_token = config.text.bos_token_id,
          .eos_token = config.text.eos_token_id,
          .image_token = config.vision && weights.vision ? config.image_token_id : -1,
          .has_vision = config.vision.has_value() && weights.vision.has_value()};
}

}  // namespace

struct Model::Parts {
  std::shared_ptr<Checkpoint> checkpoint;
  Config config;
  kernels::Policy policy;
  ModelOptions options;
  ModelInfo info;
  kernels::Workspace workspace;
  std::optional<kernels::Context> context;
  std::optional<Pass> pass;
  std::optional<VisionTower> vision;  // none: a text-only checkpoint
};

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;
const ModelInfo& Model::info() const {
  return parts_->info;
}
const Config& Model::config() const {
  return parts_->config;
}
const kernels::Policy& Model::policy() const {
  return parts_->policy;
}

Result<std::unique_ptr<Model>> Model::create(std::shared_ptr<Checkpoint> checkpoint,
                                             ThreadPool& pool, ModelOptions options) {
  auto parts = std::make_unique<Parts>();
  parts->config = options.config.value_or(checkpoint->config());
  const TextConfig& config = parts->config.text;
  FATHOM_ASSIGN(parts->policy, kernels::find_policy(options.policy));
  FATHOM_TRY(check_token_map(config, options.token_map));
  FATHOM_TRY(check_candidates(config));
  parts->info = make_info(parts->config, checkpoint->weights());
  add_draft_info(config, checkpoint->weights(), options.step_rows_max, &parts->info);
  parts->context.emplace(kernels::Context{pool, parts->workspace, options.isa});
  std::vector<LayerRole> roles;
  for (int32_t l = 0; l < config.num_hidden_layers; ++l)
    roles.push_back(layer_role(config, LayerId{l}));
  roles.resize(roles.size() + checkpoint->weights().mtp.size());  // stages: window attention only
  parts->pass.emplace(
      Pass{.config = config,
           .weights = checkpoint->weights(),
           .experts = checkpoint->experts(),
           .ops = Ops(*parts->context, parts->policy),
           .taps = Taps(options.observer, static_cast<int32_t>(config.num_hidden_layers)),
           .main_frequencies =
               kernels::rope_frequencies(config.qk_rope_head_dim, config.rope_theta, std::nullopt),
           .compressed_frequencies = kernels::rope_frequencies(
               config.qk_rope_head_dim, config.compress_rope_theta, yarn(config)),
           .roles = std::move(roles),
           .engram = engram_hashing(config, options.token_map),
           .token_map = std::move(options.token_map)});
  if (parts->info.has_vision)
    parts->vision.emplace(*parts->config.vision, config.hidden_size, *checkpoint->weights().vision,
                          parts->policy, *parts->context);
  parts->checkpoint = std::move(checkpoint);
  parts->options = std::move(options);
  return std::unique_ptr<Model>(new Model(std::move(parts)));
}

Result<std::unique_ptr<SequenceState>> Model::new_sequence(int64_t token_count_max) {
  if (token_count_max < 1 || token_count_max > parts_->info.context_tokens_max)
    return error(Code::kInvalidArgument, "a sequence of {} tokens: this model holds 1 to {}",
                 token_count_max, parts_->info.context_tokens_max);
  FATHOM_ASSIGN(std::unique_ptr<SequenceState> state,
                State::create(parts_->config.text, parts_->policy,
                              {.token_count_max = token_count_max,
                               .step_rows_max = parts_->options.step_rows_max,
                               .draft_stages = std::ssize(parts_->pass->weights.mtp),
                               .truncate_rows_max = parts_->info.draft_tokens_max + 1}));
  // The kernel grants more than there is and kills the process when the pages are written.
  const int64_t bytes = static_cast<const State&>(*state).bytes_max();
  const int64_t free_bytes = available_memory_bytes();
  if (bytes > free_bytes)
    return error(
        Code::kResourceExhausted,
        "a sequence of {} tokens needs {} bytes for its caches, {} are free; use a shorter "
        "context (--ctx-size)",
        token_count_max, bytes, free_bytes);
  return state;
}

namespace {

Status no_vision() {
  return error(Code::kUnsupported,
               "this checkpoint has no vision tower, so it can't be asked about pictures");
}

// How far a call has come with one of its sequences.
struct Progress {
  int64_t tokens_done = 0;
  float* logits = nullptr;  // where the next wanted row goes
};

Status check_rows(const TextConfig& config, const SequenceRows& rows) {
  auto* state = dynamic_cast<State*>(rows.state);
  FATHOM_CHECK(state != nullptr, "a state that this model did not make");
  const auto count = static_cast<int64_t>(rows.tokens.size());
  if (state->token_count() + count > state->token_count_max())
    return error(Code::kResourceExhausted, "{} more tokens after {}: the sequence has room for {}",
                 count, state->token_count(), state->token_count_max());
  if (rows.logits_from < state->logits_from())
    return error(Code::kInvalidArgument,
                 "logits wanted from position {}, an earlier step was told from {} and left out "
                 "what only the positions before need; start a new sequence",
                 rows.logits_from, state->logits_from());
  for (const InputToken& input : rows.tokens)
    if (input.token < 0 || input.token >= config.vocab_size)
      return error(Code::kInvalidArgument, "token {}: ids of this model are 0 to {}", input.token,
                   config.vocab_size - 1);
  return Status::ok();
}

// Positions of a call that get logits.
int64_t wanted_count(const SequenceRows& rows) {
  const auto count = static_cast<int64_t>(rows.tokens.size());
  return std::clamp<int64_t>(rows.state->token_count() + count - rows.logits_from, 0, count);
}

}  // namespace

Status Model::forward(std::span<const SequenceRows> sequences, const CancelFlag* cancel,
                      std::vector<float>* logits) {
  const int64_t vocab = parts_->info.vocab_count;
  int64_t wanted = 0;
  for (const SequenceRows& rows : sequences) {
    FATHOM_TRY(check_rows(parts_->config.text, rows));
    wanted += wanted_count(rows);
  }
  logits->resize(static_cast<size_t>(wanted * vocab));
  std::vector<Progress> progress;
  float* next = logits->data();
  for (const SequenceRows& rows : sequences) {
    progress.push_back({.logits = next});
    next += wanted_count(rows) * vocab;
  }
  const ForwardOptions options = {.trim_prefill = parts_->options.trim_prefill, .cancel = cancel};
  for (bool is_done = false; !is_done;) {
    std::vector<Segment> segments;
    std::vector<MatrixView<float>> outputs;
    int64_t room = parts_->options.step_rows_max;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const SequenceRows& rows = sequences[i];
      const auto left = static_cast<int64_t>(rows.tokens.size()) - progress[i].tokens_done;
      SequenceRows part = rows;
      part.tokens = rows.tokens.subspan(static_cast<size_t>(progress[i].tokens_done),
                                        static_cast<size_t>(std::min(left, room)));
      if (part.tokens.empty()) continue;
      const MatrixView<float> out(progress[i].logits, wanted_count(part), vocab);
      Segment& segment = segments.emplace_back();
      segment.state = static_cast<State*>(rows.state);
      segment.tokens = part.tokens;
      segment.logits_from = rows.logits_from;
      outputs.push_back(out);
      progress[i].logits += out.rows * vocab;
      progress[i].tokens_done += static_cast<int64_t>(part.tokens.size());
      room -= static_cast<int64_t>(part.tokens.size());
    }
    is_done = segments.empty();
    if (!is_done) FATHOM_TRY(v41::forward(*parts_->pass, options, std::move(segments), outputs));
  }
  return Status::ok();
}

namespace {

Status check_draft(const ModelInfo& info, const State& state, TokenId next) {
  if (info.draft_tokens_max == 0)
    return error(Code::kUnsupported, "this checkpoint has no drafter (no mtp.* tensors)");
  if (state.token_count() == 0)
    return error(Code::kInvalidArgument, "drafts follow at least one position, there is none");
  if (next < 0 || next >= info.vocab_count)
    return error(Code::kInvalidArgument, "token {}: ids of this model are 0 to {}", next,
                 info.vocab_count - 1);
  return Status::ok();
}

}  // namespace

Status Model::draft(SequenceState& state, TokenId next, const DraftChoice& choose,
                    const CancelFlag* cancel) {
  auto& own = dynamic_cast<State&>(state);
  FATHOM_TRY(check_draft(parts_->info, own, next));
  return v41::draft(*parts_->pass, own, next, choose, cancel);
}

Status Model::seed_drafts(SequenceState& state) {
  auto& own = dynamic_cast<State&>(state);
  FATHOM_TRY(check_draft(parts_->info, own, 0));
  return v41::seed_drafts(*parts_->pass, own);
}

Result<int64_t> Model::picture_token_count(int64_t width, int64_t height) const {
  if (!parts_->vision) return no_vision();
  FATHOM_ASSIGN(const ResizePlan plan, plan_resize(width, height, *parts_->config.vision));
  return plan.span_token_count();
}

Result<PictureTokens> Model::encode_picture(const RgbImage& image, const CancelFlag* cancel) {
  if (!parts_->vision) return no_vision();
  return parts_->vision->encode(image, {.cancel = cancel, .observer = parts_->options.observer});
}

}  // namespace fathom::v41
