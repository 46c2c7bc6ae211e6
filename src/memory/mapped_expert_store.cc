#include "memory/mapped_expert_store.h"

#include <cstring>
#include <utility>

namespace fathom {

namespace {

constexpr int kScaleNan = 255;  // the one E8M0 byte that is no number

int64_t data_bytes(const WeightView& weight) {
  const int64_t elements = weight.rows * weight.cols;
  return weight.dtype == DType::kI8 ? elements / 2 : elements * dtype_bytes(weight.dtype);
}

// E8M0 bytes of a packed FP4 matrix: one a row and 32 columns.
int64_t scale_bytes(const WeightView& weight) {
  return weight.rows * (weight.cols / 32);
}

void ask_for(const ExpertWeights& expert) {
  for (const WeightView* weight : {&expert.w1, &expert.w3, &expert.w2}) {
    MappedFile::will_need(weight->data, data_bytes(*weight));
    MappedFile::will_need(weight->scales, scale_bytes(*weight));
  }
}

std::string file_name_of(const std::vector<const MappedFile*>& files, const void* data) {
  const auto* byte = static_cast<const std::byte*>(data);
  for (const MappedFile* file : files)
    if (byte >= file->all().data() && byte < file->all().data() + file->bytes())
      return file->name();
  return "memory";
}

}  // namespace

class MappedExpertStore::Lease : public ExpertPins::Lease {
 public:
  Lease(MappedExpertStore* store, Layer* layer, std::span<const ExpertId> experts)
      : store_(store), layer_(layer), experts_(experts.begin(), experts.end()) {}

  bool is_ready(int64_t index) const override { return layer_->is_checked[at(index)]; }

  Result<ExpertWeights> wait(int64_t index) override {
    FATHOM_TRY(store_->check(*layer_, at(index)));
    return layer_->mapped.experts[at(index)];
  }

 private:
  size_t at(int64_t index) const {
    return static_cast<size_t>(experts_[static_cast<size_t>(index)].value);
  }

  MappedExpertStore* store_;
  Layer* layer_;
  std::vector<ExpertId> experts_;
};

MappedExpertStore::MappedExpertStore(std::map<LayerId, MappedExpertLayer> layers,
                                     std::vector<const MappedFile*> files,
                                     bool is_larger_than_memory)
    : files_(std::move(files)), is_larger_than_memory_(is_larger_than_memory) {
  for (auto& [id, mapped] : layers) {
    const size_t count = mapped.experts.size();
    layers_.emplace(id, Layer{std::move(mapped), std::vector<bool>(count, false)});
  }
}

MappedExpertStore::Layer& MappedExpertStore::layer_of(LayerId id) {
  const auto found = layers_.find(id);
  FATHOM_CHECK(found != layers_.end(), "layer {} has no experts", id.value);
  return found->second;
}

Result<ExpertPins> MappedExpertStore::pin(LayerId layer_id, std::span<const ExpertId> experts) {
  Layer& layer = layer_of(layer_id);
  for (ExpertId expert : experts) {
    const auto e = static_cast<size_t>(expert.value);
    FATHOM_CHECK(e < layer.is_checked.size(), "expert {} of {} in layer {}", expert.value,
                 layer.is_checked.size(), layer_id.value);
    if (is_larger_than_memory_ || !layer.is_checked[e]) ask_for(layer.mapped.experts[e]);
  }
  return ExpertPins(std::vector<ExpertId>(experts.begin(), experts.end()),
                    std::make_unique<Lease>(this, &layer, experts));
}

void MappedExpertStore::prefetch(LayerId layer_id, std::span<const ExpertId> experts,
                                 PrefetchClass) {
  Layer& layer = layer_of(layer_id);
  for (ExpertId expert : experts)
    ask_for(layer.mapped.experts.at(static_cast<size_t>(expert.value)));
}

Status MappedExpertStore::check_all() {
  for (auto& [id, layer] : layers_)
    for (size_t expert = 0; expert < layer.is_checked.size(); ++expert)
      FATHOM_TRY(check(layer, expert));
  return {};
}

Status MappedExpertStore::check(Layer& layer, size_t expert) {
  if (layer.is_checked[expert]) return {};
  const ExpertWeights& weights = layer.mapped.experts[expert];
  FATHOM_TRY(check_scales(layer, expert, "w1", weights.w1));
  FATHOM_TRY(check_scales(layer, expert, "w3", weights.w3));
  FATHOM_TRY(check_scales(layer, expert, "w2", weights.w2));
  layer.is_checked[expert] = true;
  return {};
}

Status MappedExpertStore::check_scales(const Layer& layer, size_t expert, const char* matrix,
                                       const WeightView& weight) const {
  const int64_t columns = weight.cols / 32;
  const void* found =
      std::memchr(weight.scales, kScaleNan, static_cast<size_t>(scale_bytes(weight)));
  if (found == nullptr) return {};
  const int64_t at = static_cast<const uint8_t*>(found) - weight.scales;
  return error(Code::kDataLoss,
               "{}: tensor {}.{}.{}.scale: wanted E8M0 bytes from 0 to 254, found 255 (NaN) at "
               "[{}, {}]: the file is damaged, fetch it again",
               file_name_of(files_, weight.scales), layer.mapped.name, expert, matrix, at / columns,
               at % columns);
}

}  // namespace fathom
