#include "model/deepseek_v41/vision.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/vision_attention.h"
#include "model/blocks/taps.h"
#include "model/deepseek_v41/vision/patches.h"
#include "model/deepseek_v41/vision/placement.h"
#include "model/deepseek_v41/vision/shuffle.h"

namespace fathom::v41 {
namespace {

constexpr float kNormEps = 1e-6F;

// Rows that go through a block's linears together: enough to pay for reading the weights, few
// enough that [rows, 2 I] stays small (13 MB for the released model).
constexpr int64_t kChunkRows = 576;

// An uninitialised [rows, cols] that frees itself.
struct Buffer {
  std::unique_ptr<float[]> memory;
  MatrixView<float> view;

  Buffer() = default;
  Buffer(int64_t rows, int64_t cols)
      : memory(new float[static_cast<size_t>(rows * cols)]), view(memory.get(), rows, cols) {}
};

// Columns [first, first + count) of every row.
MatrixView<float> columns(MatrixView<float> x, int64_t first, int64_t count) {
  return {x.data + first, x.rows, count, x.stride};
}

// Calls body(first, count) for chunks of rows.
template <typename Body>
void for_chunks(int64_t rows, const Body& body) {
  for (int64_t first = 0; first < rows; first += kChunkRows) {
    body(first, std::min(kChunkRows, rows - first));
  }
}

}  // namespace

// N patches, C the tower's width.
struct VisionTower::Pass {
  explicit Pass(const VisionRun& run_in) : run(run_in), taps(run_in.observer) {}

  const VisionRun& run;
  Taps taps;
  ResizePlan plan;
  Buffer x;           // [N, C] the residual stream
  Buffer qkv;         // [N, 3 C]
  Buffer attended;    // [N, C]
  Buffer chunk;       // [kChunkRows, C]
  Buffer inner;       // [kChunkRows, 2 I]
  Buffer rope_table;  // [N, head dim] cosines, then sines

  bool is_cancelled() const { return run.cancel != nullptr && run.cancel->load(); }
};

VisionTower::VisionTower(const VisionConfig& config, int64_t hidden_size,
                         const VisionWeights& weights, const kernels::Policy& policy,
                         const kernels::Context& context)
    : config_(config),
      hidden_size_(hidden_size),
      weights_(weights),
      policy_(policy),
      context_(context) {}

Result<PictureTokens> VisionTower::encode(const RgbImage& image, const VisionRun& run) const {
  Pass pass(run);
  FATHOM_ASSIGN(pass.plan, plan_resize(image.width, image.height, config_));
  FATHOM_TRY(embed_patches(image, &pass));
  for (int64_t block = 0; block < config_.num_hidden_layers; ++block) {
    FATHOM_TRY(run_block(block, &pass));
  }
  norm(pass.x.view, weights_.norm, pass.x.view);
  FATHOM_TRY(pass.taps.pass(run.name + ".vit_out", pass.x.view));
  FATHOM_ASSIGN(std::vector<float> features, align(&pass));

  std::vector<SpanKind> kinds = span_kinds(pass.plan);
  const auto count = static_cast<int64_t>(kinds.size());
  if (run.observer != nullptr) {
    std::vector<int32_t> types(kinds.size());
    std::transform(kinds.begin(), kinds.end(), types.begin(),
                   [](SpanKind kind) { return static_cast<int32_t>(kind); });
    run.observer->tap(run.name + ".types", MatrixView<int32_t>(types.data(), 1, count));
  }
  const MatrixView<const float> rows(features.data(), pass.plan.image_token_count(), hidden_size_);
  return PictureTokens{.count = count, .embeddings = place_features(kinds, rows, weights_)};
}

Status VisionTower::embed_patches(const RgbImage& image, Pass* pass) const {
  FATHOM_ASSIGN(const RgbImage canvas, fit_to_box(image, pass->plan, config_, context_.pool));
  std::vector<float> patches = make_patches(canvas, config_.patch_size);
  const int64_t count = pass->plan.patch_count();
  const MatrixView<float> x(patches.data(), count, 3 * config_.patch_size * config_.patch_size);
  FATHOM_TRY(pass->taps.pass(pass->run.name + ".patches", x));
  pass->x = Buffer(count, config_.hidden_size);
  linear(x, weights_.patch_embed_proj, pass->x.view);

  const int64_t chunk = std::min(count, kChunkRows);
  pass->qkv = Buffer(count, 3 * config_.hidden_size);
  pass->attended = Buffer(count, config_.hidden_size);
  pass->chunk = Buffer(chunk, config_.hidden_size);
  pass->inner = Buffer(chunk, 2 * config_.intermediate_size);
  pass->rope_table = Buffer(count, config_.hidden_size / config_.num_attention_heads);
  make_vision_rope_table(pass->plan, config_.rope_theta, pass->rope_table.view);
  return pass->taps.pass("vision.patch_embed", pass->x.view);
}

Status VisionTower::run_block(int64_t block, Pass* pass) const {
  const std::string name = fmt::format("vision.blocks.{}", block);
  const VisionBlockWeights& weights = weights_.blocks[static_cast<size_t>(block)];
  if (pass->is_cancelled()) return error(Code::kCancelled, "{}: cancelled", name);
  attend(weights, pass);
  if (pass->is_cancelled()) return error(Code::kCancelled, "{}: cancelled", name);
  feed_forward(weights, pass);
  return pass->taps.pass(name + ".out", pass->x.view);
}

// x += wo · attention(rope(wqkv · norm1(x)))
void VisionTower::attend(const VisionBlockWeights& weights, Pass* pass) const {
  const MatrixView<float> x = pass->x.view;
  const MatrixView<float> qkv = pass->qkv.view;
  const int64_t width = config_.hidden_size;
  const int64_t head_dim = width / config_.num_attention_heads;
  for_chunks(x.rows, [&](int64_t first, int64_t count) {
    const MatrixView<float> normed = pass->chunk.view.rows_from(0, count);
    norm(x.rows_from(first, count), weights.norm1, normed);
    linear(normed, weights.wqkv, qkv.rows_from(first, count));
  });
  // q and k turn alike, so their columns go through rope as twice as many heads.
  kernels::rope(context_, {.x = columns(qkv, 0, 2 * width),
                           .head_dim = head_dim,
                           .table = pass->rope_table.view,
                           .pairs = kernels::RopePairs::kHalfSplit,
                           .inverse = false,
                           .round_bf16 = policy_.round_bf16});
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  kernels::vision_attention(context_, {.q = columns(qkv, 0, width),
                                       .k = columns(qkv, width, width),
                                       .v = columns(qkv, 2 * width, width),
                                       .head_dim = head_dim,
                                       .scale = static_cast<float>(scale),
                                       .query_tile = pass->run.query_tile,
                                       .y = pass->attended.view,
                                       .round_probabilities = policy_.round_bf16,
                                       .round_bf16 = policy_.round_bf16});
  for_chunks(x.rows, [&](int64_t first, int64_t count) {
    const MatrixView<float> projected = pass->chunk.view.rows_from(0, count);
    linear(pass->attended.view.rows_from(first, count), weights.wo, projected);
    add_to(x.rows_from(first, count), projected);
  });
}

// x += w2 · (silu(gate) · up), (gate | up) = w1 · norm2(x)
void VisionTower::feed_forward(const VisionBlockWeights& weights, Pass* pass) const {
  const MatrixView<float> x = pass->x.view;
  const int64_t width = config_.intermediate_size;
  for_chunks(x.rows, [&](int64_t first, int64_t count) {
    const MatrixView<float> chunk = pass->chunk.view.rows_from(0, count);
    const MatrixView<float> inner = pass->inner.view.rows_from(0, count);
    const MatrixView<float> gate = columns(inner, 0, width);
    norm(x.rows_from(first, count), weights.norm2, chunk);
    linear(chunk, weights.mlp_w1, inner);
    kernels::silu_mul(context_, {.gate = gate,
                                 .up = columns(inner, width, width),
                                 .y = gate,
                                 .round_bf16 = policy_.round_bf16});
    linear(gate, weights.mlp_w2, chunk);
    add_to(x.rows_from(first, count), chunk);
  });
}

// w2 · gelu(w1 · cells): one row of D a token of the grid.
Result<std::vector<float>> VisionTower::align(Pass* pass) const {
  const int64_t tokens = pass->plan.image_token_count();
  const Buffer cells(tokens,
                     config_.hidden_size * config_.downsample_ratio * config_.downsample_ratio);
  shuffle_patches(pass->x.view, pass->plan, config_.downsample_ratio, cells.view);
  const Buffer hidden(tokens, weights_.aligner_w1.weight.rows);
  linear(cells.view, weights_.aligner_w1, hidden.view);
  kernels::gelu_erf(context_,
                    {.x = hidden.view, .y = hidden.view, .round_bf16 = policy_.round_bf16});
  std::vector<float> features(static_cast<size_t>(tokens * hidden_size_));
  const MatrixView<float> out(features.data(), tokens, hidden_size_);
  linear(hidden.view, weights_.aligner_w2, out);
  FATHOM_TRY(pass->taps.pass(pass->run.name + ".aligner_out", out));
  return features;
}

void VisionTower::linear(MatrixView<const float> x, const LinearWeights& weights,
                         MatrixView<float> y) const {
  kernels::linear(context_, {.x = x,
                             .weight = weights.weight,
                             .bias = weights.bias.data(),
                             .y = y,
                             .quantise_activations = false,
                             .round_bf16 = policy_.round_bf16});
}

void VisionTower::linear(MatrixView<const float> x, const WeightView& weight,
                         MatrixView<float> y) const {
  kernels::linear(context_, {.x = x,
                             .weight = weight,
                             .bias = nullptr,
                             .y = y,
                             .quantise_activations = false,
                             .round_bf16 = policy_.round_bf16});
}

void VisionTower::norm(MatrixView<const float> x, Vector weight, MatrixView<float> y) const {
  kernels::rms_norm(
      context_,
      {.x = x, .weight = weight, .eps = kNormEps, .y = y, .round_bf16 = policy_.round_bf16});
}

void VisionTower::add_to(MatrixView<float> x, MatrixView<const float> y) const {
  kernels::add(context_, {.a = x, .b = y, .y = x, .round_bf16 = policy_.round_bf16});
}

}  // namespace fathom::v41
