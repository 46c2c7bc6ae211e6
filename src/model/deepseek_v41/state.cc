#include "model/deepseek_v41/state.h"

namespace fathom::v41 {
namespace {

Result<std::unique_ptr<SourceState>> make_source(const TextConfig& config, int32_t ratio,
                                                 bool is_bf16, int64_t token_count_max) {
  auto source = std::make_unique<SourceState>();
  const int64_t groups = token_count_max / ratio;
  FATHOM_ASSIGN(source->compressed_kv, CacheRows::create(config.head_dim, is_bf16, groups));
  FATHOM_ASSIGN(source->index_k, CacheRows::create(config.index_head_dim, is_bf16, groups));
  source->pending.k.resize(static_cast<size_t>((ratio - 1) * config.head_dim));
  source->pending.g.resize(source->pending.k.size());
  return source;
}

}  // namespace

Result<std::unique_ptr<State>> State::create(const TextConfig& config,
                                             const kernels::Policy& policy, int64_t token_count_max,
                                             int64_t step_rows_max) {
  auto state = std::make_unique<State>();
  state->token_count_max_ = token_count_max;
  state->history_max_ = config.engram_layer_ids.empty() ? 0 : config.engram_max_ngram_size - 1;
  const bool is_bf16 = policy.quantise_caches;
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    FATHOM_ASSIGN(WindowRows window, WindowRows::create(config.head_dim, is_bf16,
                                                        config.sliding_window, step_rows_max));
    state->windows_.push_back(std::move(window));
    const LayerRole role = layer_role(config, LayerId{l});
    std::unique_ptr<SourceState> source;
    if (role.is_kv_source) {
      FATHOM_ASSIGN(source, make_source(config, role.ratio, is_bf16, token_count_max));
    }
    state->sources_.push_back(std::move(source));
  }
  return state;
}

// Σ bytes(cache) over every cache of a sequence.
template <typename Bytes>
int64_t State::sum_of_caches(const Bytes& bytes) const {
  int64_t sum = 0;
  for (const WindowRows& window : windows_) sum += bytes(window);
  for (const auto& source : sources_)
    if (source != nullptr) sum += bytes(source->compressed_kv) + bytes(source->index_k);
  return sum;
}

int64_t State::bytes() const {
  return sum_of_caches([](const auto& cache) { return cache.bytes(); });
}

int64_t State::bytes_max() const {
  return sum_of_caches([](const auto& cache) { return cache.bytes_max(); });
}

void State::commit(int64_t row_count, std::span<const int32_t> ids) {
  token_count_ += row_count;
  history_.insert(history_.end(), ids.begin(), ids.end());
  const auto keep = static_cast<size_t>(history_max_);
  if (history_.size() > keep)
    history_.erase(history_.begin(), history_.end() - static_cast<std::ptrdiff_t>(keep));
}

}  // namespace fathom::v41
