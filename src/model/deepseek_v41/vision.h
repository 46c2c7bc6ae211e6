// The vision tower: a decoded picture in, the rows of its token span out. Spec §6.
// The parts stand in vision/: resize plan, resampling, patches, rotary table, aligner, placement.
#pragma once

#include <string>
#include <vector>

#include "kernels/context.h"
#include "kernels/policy.h"
#include "model/blocks/observer.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/vision/resize_plan.h"
#include "model/deepseek_v41/weights.h"
#include "model/language_model.h"

namespace fathom::v41 {

struct VisionRun {
  const CancelFlag* cancel = nullptr;  // looked at twice a block
  Observer* observer = nullptr;  // taps NAME.patches, NAME.vit_out, NAME.aligner_out, NAME.types
  std::string name = "picture0";
  int64_t query_tile =
      0;  // rows of queries attended at once, 0 for the default; bits do not change
};

// Engine thread only. Holds no memory between two pictures. For N patches it takes about
// 24·N·C bytes beside the kernels' workspace: 220 MB for the released model's largest picture.
class VisionTower {
 public:
  // All are kept by reference and must outlive the tower. `hidden_size` is the text model's D.
  VisionTower(const VisionConfig& config, int64_t hidden_size, const VisionWeights& weights,
              const kernels::Policy& policy, const kernels::Context& context);

  // Errors: kInvalidArgument when the picture does not fit; kCancelled; kInternal naming the block
  // with the first value that is not finite.
  Result<PictureTokens> encode(const RgbImage& image, const VisionRun& run) const;

 private:
  struct Pass;  // one picture's buffers, vision.cc

  Status embed_patches(const RgbImage& image, Pass* pass) const;
  Status run_block(int64_t block, Pass* pass) const;
  void attend(const VisionBlockWeights& weights, Pass* pass) const;
  void feed_forward(const VisionBlockWeights& weights, Pass* pass) const;
  Result<std::vector<float>> align(Pass* pass) const;
  void linear(MatrixView<const float> x, const LinearWeights& weights, MatrixView<float> y) const;
  void linear(MatrixView<const float> x, const WeightView& weight, MatrixView<float> y) const;
  void norm(MatrixView<const float> x, Vector weight, MatrixView<float> y) const;
  void add_to(MatrixView<float> x, MatrixView<const float> y) const;

  const VisionConfig& config_;
  int64_t hidden_size_;
  const VisionWeights& weights_;
  const kernels::Policy& policy_;
  const kernels::Context& context_;
};

}  // namespace fathom::v41
