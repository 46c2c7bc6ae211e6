// Topic: a checkpoint that is damaged in one way is refused, and the message names file, tensor,
// wanted, found, and what to do. Cases FMT-3 and WGT-1 of tests/data/cases are among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/deepseek_v41/checkpoint.h"
#include "tests/model/deepseek_v41/damaged_checkpoint.h"

namespace fathom::v41 {
namespace {

using testing::HasSubstr;
using Tensors = std::vector<RawTensor>;

// One way to damage a copy of v41-tiny, and what the message must say besides the folder.
struct Damage {
  const char* name;
  std::function<void(const DamagedCheckpoint&)> apply;
  std::vector<const char*> complaints;
};

void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

class DamagedCheckpointTest : public testing::TestWithParam<Damage> {};

TEST_P(DamagedCheckpointTest, IsRefusedAndSaysWhy) {
  const DamagedCheckpoint copy("v41-tiny");
  GetParam().apply(copy);
  const auto checkpoint = Checkpoint::open(copy.directory());
  ASSERT_FALSE(checkpoint.is_ok());
  for (const char* complaint : GetParam().complaints)
    EXPECT_THAT(checkpoint.status().message(), HasSubstr(complaint));
}

using Copy = const DamagedCheckpoint&;

constexpr const char* kWeight = "layers.0.attn.wq_a.weight";
constexpr const char* kScale = "layers.0.attn.wq_a.scale";
constexpr const char* kNorm = "layers.2.attn_norm.weight";
constexpr const char* kIndexFile = "model.safetensors.index.json";

std::string name_of(const testing::TestParamInfo<Damage>& info) {
  return info.param.name;
}

// Changes one tensor and keeps its size in step with its shape.
Damage reshaped(const char* name, const char* tensor, DType dtype, std::vector<int64_t> shape,
                std::vector<const char*> complaints) {
  return {name,
          [=](Copy copy) {
            copy.edit_tensor(tensor, [&](RawTensor& t) {
              int64_t bytes = dtype_bytes(dtype);
              for (int64_t dim : shape) bytes *= dim;
              t.dtype = dtype;
              t.shape = shape;
              t.data.resize(static_cast<size_t>(bytes), '\x38');
            });
          },
          std::move(complaints)};
}

template <typename T>
Damage poisoned(const char* name, const char* tensor, size_t index, T value,
                std::vector<const char*> complaints) {
  return {name,
          [=](Copy copy) {
            copy.edit_tensor(tensor, [&](RawTensor& t) { set_element(&t, index, value); });
          },
          std::move(complaints)};
}

constexpr uint16_t kBf16Nan = 0x7FC0;
constexpr uint16_t kBf16MinusInf = 0xFF80;
const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

const Damage kFileDamages[] = {

    Damage{"no_config",
           [](Copy c) { c.remove("config.json"); },
           {"/config.json", "found no such file", "fetch it"}},
    Damage{"no_index", [](Copy c) { c.remove(kIndexFile); }, {kIndexFile, "fetch it"}},
    Damage{"no_shard",
           [](Copy c) { c.remove(c.shard_of(kWeight)); },
           {"model-00003-of-00016.safetensors", "wanted this shard", "fetch it"}},
    Damage{"shard_unfinished",
           [](Copy c) {
             c.remove(c.shard_of(kWeight));
             c.replace(c.shard_of(kWeight) + ".incomplete", "x");
           },
           {"model-00003-of-00016.safetensors", "wanted this shard"}},
    Damage{"shard_empty", [](Copy c) { c.replace(c.shard_of(kWeight), ""); }, {"model-00003"}},
    Damage{"shard_is_page",
           [](Copy c) { c.replace(c.shard_of(kWeight), "<!DOCTYPE html>"); },
           {"model-00003", "not a safetensors file"}},
    Damage{"shard_is_pointer",
           [](Copy c) { c.replace(c.shard_of(kWeight), "version https://git-lfs.github.com/"); },
           {"model-00003", "not a safetensors file"}},
    Damage{"shard_shorter",
           [](Copy c) { c.resize(c.shard_of(kWeight), -1); },
           {"model-00003", "cut short", "fetch it again"}},
    Damage{"shard_header_only",
           [](Copy c) { c.resize(c.shard_of(kWeight), -303'000); },
           {"model-00003", "cut short"}},
    Damage{"shard_longer",
           [](Copy c) { c.append(c.shard_of(kWeight), "tail"); },
           {"model-00003", "4 bytes follow the last tensor"}},
    Damage{"config_cut",
           [](Copy c) { c.resize("config.json", -100); },
           {"config.json", "not valid JSON"}},
    Damage{"config_huge",
           [](Copy c) { c.resize("config.json", 2 << 20); },
           {"config.json", "at most 1048576 are read"}},
    Damage{"config_twice",
           [](Copy c) { c.replace("config.json", R"({"model_type":"a","model_type":"a"})"); },
           {"config.json", "\"model_type\" appears twice"}},
    Damage{"index_cut", [](Copy c) { c.resize(kIndexFile, -100); }, {kIndexFile, "not valid JSON"}},
    Damage{"index_without_map",
           [](Copy c) { c.replace(kIndexFile, "{}"); },
           {kIndexFile, "weight_map"}},
    Damage{"index_climbs_out",
           [](Copy c) {
             c.edit_index([](Json& map) { map[kWeight] = "../model-00003-of-00016.safetensors"; });
           },
           {kIndexFile, kWeight, "../model-00003"}}};
INSTANTIATE_TEST_SUITE_P(Files, DamagedCheckpointTest, testing::ValuesIn(kFileDamages), name_of);

const Damage kIndexDamages[] = {

    Damage{"tensor_not_in_its_shard",
           [](Copy c) {
             c.edit_shard(kNorm, [](Tensors& all) {
               std::erase_if(all, [](const RawTensor& t) { return t.name == kNorm; });
             });
           },
           {kIndexFile, kNorm, "model-00005-of-00016.safetensors", "found no such tensor"}},
    Damage{"tensor_not_in_index",
           [](Copy c) { c.edit_index([](Json& map) { map.erase(kNorm); }); },
           {kNorm, "model-00005-of-00016.safetensors", "does not name it"}},
    Damage{"names_swapped",
           [](Copy c) { c.edit_index([](Json& map) { std::swap(map[kNorm], map[kWeight]); }); },
           {kIndexFile, "found no such tensor"}},
    Damage{"tensor_in_two_shards",
           [](Copy c) {
             c.edit_shard(kWeight, [](Tensors& all) {
               all.push_back({kNorm, DType::kBF16, {1}, "xx"});
             });
           },
           {kNorm, "model-00003-of-00016.safetensors", "places it in model-00005"}},
    Damage{"tensor_missing",
           [](Copy c) { c.forget_tensors([](const auto& name) { return name == kNorm; }); },
           {"1 tensors that config.json asks for are missing", kNorm, "fetch"}},
    Damage{"many_missing",
           [](Copy c) {
             c.forget_tensors([](const auto& name) { return name.starts_with("layers.2.ffn"); });
           },
           {"58 tensors that", "layers.2.ffn.gate.weight", "and 48 more"}},
    Damage{"tensor_unexpected",
           [](Copy c) {
             c.edit_shard(kNorm, [](Tensors& all) {
               all.push_back({"layers.2.attn.extra", DType::kU8, {1}, "x"});
             });
             c.edit_index([](Json& map) { map["layers.2.attn.extra"] = map[kNorm]; });
           },
           {"config.json has no place for", "layers.2.attn.extra (in model-00005"}},
    Damage{"vision_incomplete",
           [](Copy c) {
             c.forget_tensors([](const auto& name) { return name == "vision.norm.weight"; });
           },
           {"missing: vision.norm.weight"}},
    Damage{
        "engram_of_older_download",
        [](Copy c) { c.forget_tensors([](const auto& n) { return n.find("engram") != n.npos; }); },
        {"layers.1.engram.embed.weight", "fetch"}}};
INSTANTIATE_TEST_SUITE_P(Index, DamagedCheckpointTest, testing::ValuesIn(kIndexDamages), name_of);

const Damage kTensorDamages[] = {

    reshaped("weight_dtype", kWeight, DType::kBF16, {64, 128},
             {"model-00003", kWeight, "wanted F8_E4M3 [64, 128], found BF16 [64, 128]"}),
    reshaped("weight_shape", kWeight, DType::kF8E4M3, {128, 64},
             {kWeight, "wanted F8_E4M3 [64, 128], found F8_E4M3 [128, 64]"}),
    reshaped("norm_rank", kNorm, DType::kBF16, {1, 128},
             {kNorm, "wanted BF16 [128], found BF16 [1, 128]"}),
    reshaped("scale_transposed", kScale, DType::kF8E8M0, {4, 2},
             {kScale, kWeight, "wanted F8_E8M0 [2, 4], found F8_E8M0 [4, 2]"}),
    reshaped("scale_of_other_blocks", kScale, DType::kF8E8M0, {1, 1},
             {kScale, "the scale of layers.0.attn.wq_a.weight", "[1, 1]"}),
    reshaped("scale_as_f32", kScale, DType::kF32, {2, 4}, {kScale, kWeight, "found F32"}),
    reshaped("expert_scale_shape", "layers.2.ffn.experts.3.w2.scale", DType::kF8E8M0, {128, 1},
             {"layers.2.ffn.experts.3.w2.scale", "wanted F8_E8M0 [128, 2]"}),
    Damage{"scale_missing",
           [](Copy c) { c.forget_tensors([](const auto& name) { return name == kScale; }); },
           {kScale, "the scale of layers.0.attn.wq_a.weight"}},
    Damage{"scale_under_old_name",
           [](Copy c) {
             c.edit_tensor(kScale,
                           [](RawTensor& t) { t.name = "layers.0.attn.wq_a.weight_scale_inv"; });
             c.edit_index([](Json& map) {
               map["layers.0.attn.wq_a.weight_scale_inv"] = map[kScale];
               map.erase(kScale);
             });
           },
           {"missing: layers.0.attn.wq_a.scale",
            "no place for: "
            "layers.0.attn.wq_a.weight_scale_inv"}},
    poisoned<uint8_t>("scale_nan", kScale, 5, 255, {"model-00003", kScale, "255", "element 5"}),
    poisoned("norm_nan", kNorm, 7, kBf16Nan, {"model-00005", kNorm, "nan", "element 7"}),
    poisoned("norm_inf", "norm.weight", 0, kBf16MinusInf, {"norm.weight", "-inf"}),
    poisoned("sink_nan", "layers.1.attn.attn_sink", 3, kNan, {"attn_sink", "element 3"}),
    poisoned("hc_inf", "layers.1.hc_ffn_fn", 1000, kInf, {"layers.1.hc_ffn_fn", "inf"}),
    poisoned("bias_nan", "layers.1.ffn.gate.bias_vl", 1, kNan, {"gate.bias_vl", "nan"}),
    poisoned("engram_nan", "layers.3.engram.k_weight", 200, kBf16Nan, {"k_weight", "nan"}),
    poisoned("vision_nan", "vision.blocks.1.attn.wqkv.bias", 2, kBf16Nan, {"wqkv.bias"}),
    poisoned("delimiter_nan", "image_end", 2, kBf16Nan, {"image_end", "element 2"}),
    Damage{"config_of_other_model",
           [](Copy c) {
             c.edit_json("config.json",
                         [](Json& json) { json["text_config"]["q_lora_rank"] = 96; });
           },
           {"wanted", "[96", "found", "do not belong together"}}};
INSTANTIATE_TEST_SUITE_P(Tensors, DamagedCheckpointTest, testing::ValuesIn(kTensorDamages),
                         name_of);

}  // namespace
}  // namespace fathom::v41
