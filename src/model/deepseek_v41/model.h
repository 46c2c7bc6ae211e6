// DeepSeek-V4.1 as the engine sees it. Owns the open checkpoint and what a forward pass needs
// beside the states; states belong to the caller and must not outlive the model.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "kernels/policy.h"
#include "model/blocks/observer.h"
#include "model/deepseek_v41/checkpoint.h"
#include "model/language_model.h"

namespace fathom::v41 {

// Rows that run together in a prefill. More rows share each weight read, and cost scratch: about
// 0.7 MB a row in the released model.
inline constexpr int64_t kStepRowsDefault = 512;

struct ModelOptions {
  std::string_view policy = "reference";        // kernels/policy.h
  kernels::Isa isa = kernels::Isa::kPortable;   // choose_isa()
  std::vector<int32_t> token_map = {};          // token -> compressed id (room text); Engram only
  int64_t step_rows_max = kStepRowsDefault;     // longer inputs are cut into steps of this
  bool trim_prefill = true;                     // spec §3.11; changes no bit
  std::optional<Config> config = std::nullopt;  // instead of the checkpoint's; for verify
  Observer* observer = nullptr;                 // sees every tap; null in the product
};

class Model : public LanguageModel {
 public:
  // `pool` must outlive the model. kInvalidArgument when the token map does not fit the config.
  static Result<std::unique_ptr<Model>> create(std::shared_ptr<Checkpoint> checkpoint,
                                               ThreadPool& pool, ModelOptions options);
  ~Model() override;

  const ModelInfo& info() const override;
  Result<std::unique_ptr<SequenceState>> new_sequence(int64_t token_count_max) override;
  Status forward(std::span<const SequenceRows> sequences, const CancelFlag* cancel,
                 std::vector<float>* logits) override;
  Status draft(SequenceState& state, TokenId next, const DraftChoice& choose,
               const CancelFlag* cancel) override;
  // The first part of draft() alone, for verify: the drafter's windows.
  Status seed_drafts(SequenceState& state);
  Result<int64_t> picture_token_count(int64_t width, int64_t height) const override;
  Result<PictureTokens> encode_picture(const RgbImage& image, const CancelFlag* cancel) override;

  const Config& config() const;
  const kernels::Policy& policy() const;

 private:
  struct Parts;
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fathom::v41
