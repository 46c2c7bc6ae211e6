#include "model/deepseek_v41/state.h"

#include <algorithm>

#include "base/check.h"

namespace fathom::v41 {
namespace {

Result<std::unique_ptr<SourceState>> make_source(const TextConfig& config, int32_t ratio,
                                                 bool is_bf16, const StateSizes& sizes) {
  auto source = std::make_unique<SourceState>();
  source->ratio = ratio;
  const int64_t groups = sizes.token_count_max / ratio;
  FATHOM_ASSIGN(source->compressed_kv, CacheRows::create(config.head_dim, is_bf16, groups));
  FATHOM_ASSIGN(source->index_k, CacheRows::create(config.index_head_dim, is_bf16, groups));
  for (GroupTail* tail : {&source->k, &source->g})
    tail->reserve(config.head_dim, ratio - 1 + sizes.truncate_rows_max);
  return source;
}

}  // namespace

void GroupTail::reserve(int64_t cols, int64_t rows_max) {
  cols_ = cols;
  rows_max_ = rows_max;
}

void GroupTail::append(MatrixView<const float> rows) {
  const int64_t first = std::max<int64_t>(0, rows.rows - rows_max_);
  for (int64_t r = first; r < rows.rows; ++r)
    rows_.insert(rows_.end(), rows.row(r).begin(), rows.row(r).end());
  const int64_t excess = std::ssize(rows_) - rows_max_ * cols_;
  if (excess > 0) rows_.erase(rows_.begin(), rows_.begin() + excess);
}

void GroupTail::drop_newest(int64_t count) {
  FATHOM_CHECK(count * cols_ <= std::ssize(rows_), "{} of {} rows dropped", count,
               std::ssize(rows_) / cols_);
  rows_.resize(rows_.size() - static_cast<size_t>(count * cols_));
}

MatrixView<const float> GroupTail::newest(int64_t count) const {
  FATHOM_CHECK(count * cols_ <= std::ssize(rows_), "{} of {} rows", count,
               std::ssize(rows_) / cols_);
  return {rows_.data() + rows_.size() - static_cast<size_t>(count * cols_), count, cols_};
}

Result<std::unique_ptr<State>> State::create(const TextConfig& config,
                                             const kernels::Policy& policy,
                                             const StateSizes& sizes) {
  auto state = std::make_unique<State>();
  state->sizes_ = sizes;
  if (!config.engram_layer_ids.empty())
    state->history_max_ = config.engram_max_ngram_size - 1 + sizes.truncate_rows_max;
  const bool is_bf16 = policy.quantise_caches;
  const int64_t window_size = config.sliding_window;
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    FATHOM_ASSIGN(WindowRows window,
                  WindowRows::create(config.head_dim, is_bf16, window_size, sizes.step_rows_max));
    state->windows_.push_back(std::move(window));
    const LayerRole role = layer_role(config, LayerId{l});
    std::unique_ptr<SourceState> source;
    if (role.is_kv_source) {
      FATHOM_ASSIGN(source, make_source(config, role.ratio, is_bf16, sizes));
    }
    state->sources_.push_back(std::move(source));
  }
  // A draft at position p sees W rows up to p and then its own block: one row more than a query.
  for (int64_t i = 0; i < sizes.draft_stages; ++i) {
    FATHOM_ASSIGN(WindowRows window,
                  WindowRows::create(config.head_dim, is_bf16, window_size + 1,
                                     std::max(window_size, config.dspark_block_size)));
    state->windows_.push_back(std::move(window));
  }
  if (sizes.draft_stages > 0) {
    const int64_t targets = std::ssize(config.dspark_target_layer_ids);
    FATHOM_ASSIGN(state->main_hidden_,
                  WindowRows::create(targets * config.hidden_size, policy.round_bf16,
                                     window_size + 1, window_size));
  }
  return state;
}

// Σ bytes(cache) over every cache of a sequence.
template <typename Bytes>
int64_t State::sum_of_caches(const Bytes& bytes) const {
  int64_t sum = 0;
  for (const WindowRows& window : windows_) sum += bytes(window);
  if (main_hidden_) sum += bytes(*main_hidden_);
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
  step_begin_ = token_count_;
  token_count_ += row_count;
  history_.insert(history_.end(), ids.begin(), ids.end());
  const auto keep = static_cast<size_t>(history_max_);
  if (history_.size() > keep)
    history_.erase(history_.begin(), history_.end() - static_cast<std::ptrdiff_t>(keep));
}

// Everything is a function of absolute positions, and each cache holds, beside the rows of the last
// step, what the step's first position looks back on: so nothing has to be restored (§8.2).
Status State::truncate(int64_t token_count) {
  const int64_t first = std::max(step_begin_, token_count_ - sizes_.truncate_rows_max);
  if (token_count < first || token_count > token_count_)
    return error(Code::kInvalidArgument,
                 "a sequence of {} tokens can be cut back to {} at least, not to {}", token_count_,
                 first, token_count);
  const int64_t forgotten = token_count_ - token_count;
  for (WindowRows& window : windows_) window.truncate(token_count);
  if (main_hidden_) main_hidden_->truncate(token_count);
  for (const auto& source : sources_) {
    if (source == nullptr) continue;
    const int64_t groups = token_count / source->ratio;
    source->compressed_kv.truncate(groups);
    source->index_k.truncate(groups);
    source->k.drop_newest(source->ratio == 1 ? 0 : forgotten);
    source->g.drop_newest(source->ratio == 1 ? 0 : forgotten);
  }
  if (!history_.empty()) history_.resize(history_.size() - static_cast<size_t>(forgotten));
  token_count_ = token_count;
  return Status::ok();
}

}  // namespace fathom::v41
