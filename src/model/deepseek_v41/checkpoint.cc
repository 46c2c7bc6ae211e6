#include "model/deepseek_v41/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "io/read_file.h"
#include "io/shard_index.h"
#include "memory/available_memory.h"
#include "memory/mapped_expert_store.h"
#include "model/deepseek_v41/weights_map.h"

namespace fathom::v41 {

namespace {

constexpr const char* kConfigName = "config.json";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kTokenizerName = "tokenizer.json";
// Reading over a gap of this size costs less than a second seek on any disk that we know.
constexpr int64_t kGapBytesMax = 256 << 10;
// Part of the free memory that a load may fill; the rest is for the state and for other programs.
constexpr double kFillShareMax = 0.9;

using Shards = std::vector<std::unique_ptr<SafetensorsFile>>;

Result<std::string> read_part(const std::string& directory, const char* name, int64_t bytes_max) {
  Result<std::string> text = read_file(directory + "/" + name, bytes_max);
  if (text.is_ok() || text.status().code() != Code::kNotFound) return text;
  if (!std::filesystem::is_directory(directory))
    return error(Code::kNotFound, "{}: there is no such folder", directory);
  return error(Code::kNotFound,
               "{}/{}: wanted a model in the official layout (config.json, "
               "model.safetensors.index.json, shards), found no such file: fetch it",
               directory, name);
}

Result<std::unique_ptr<SafetensorsFile>> open_shard(const std::string& path) {
  Result<std::unique_ptr<SafetensorsFile>> shard = SafetensorsFile::open(path);
  if (shard.is_ok() || shard.status().code() != Code::kNotFound) return shard;
  return error(Code::kNotFound, "{}: wanted this shard, {} names it, found no such file: fetch it",
               path, kIndexName);
}

// Parsing headers is most of the time of opening, so a few threads share it.
Result<Shards> open_shards(const std::string& directory, const ShardIndex& index) {
  constexpr int kThreads = 4;
  const size_t count = index.shards.size();
  std::vector<std::optional<Result<std::unique_ptr<SafetensorsFile>>>> opened(count);
  ThreadPool pool(kThreads);
  pool.parallel_for(static_cast<int64_t>(count), [&](int64_t i, int) {
    const auto at = static_cast<size_t>(i);
    opened[at] = open_shard(directory + "/" + index.shards[at]);
  });
  Shards shards;
  for (auto& shard : opened) {
    if (!shard->is_ok()) return shard->status();
    shards.push_back(std::move(*shard).value());
  }
  return shards;
}

// Index and shards must name the same tensors in the same places.
Status check_index(const ShardIndex& index, const Shards& shards) {
  size_t in_shards = 0;
  for (const auto& shard : shards) in_shards += shard->tensors().size();
  for (const ShardIndex::Item& item : index.items) {
    const SafetensorsFile& shard = *shards[static_cast<size_t>(item.shard)];
    if (shard.find(item.tensor) == nullptr)
      return error(Code::kDataLoss,
                   "{}: tensor {}: wanted in {}, found no such tensor there: index and shards do "
                   "not belong together, fetch both again",
                   kIndexName, item.tensor.substr(0, 120), shard.file().name());
  }
  if (in_shards == index.items.size()) return {};
  // Some shard holds a tensor that the index does not place there.
  for (size_t s = 0; s < shards.size(); ++s) {
    for (const TensorEntry& entry : shards[s]->tensors()) {
      const auto item =
          std::ranges::lower_bound(index.items, entry.name, {}, &ShardIndex::Item::tensor);
      if (item == index.items.end() || item->tensor != entry.name ||
          item->shard != static_cast<int32_t>(s))
        return error(Code::kDataLoss,
                     "{}: tensor {}: found in this shard, but {} {}: index and shards do not "
                     "belong together, fetch both again",
                     shards[s]->file().name(), entry.name.substr(0, 120), kIndexName,
                     item == index.items.end() || item->tensor != entry.name
                         ? "does not name it"
                         : "places it in " + index.shards[static_cast<size_t>(item->shard)]);
    }
  }
  return {};
}

bool is_stage(std::string_view name) {
  return name.starts_with("mtp.");
}

bool is_sparse_part(std::string_view name) {  // a step touches a small part of it
  return name.find(".ffn.experts.") != name.npos || name.find(".engram.embed.") != name.npos;
}

}  // namespace

struct Checkpoint::Parts {
  std::string directory;
  Config config;
  Shards shards;
  OwnedTensors owned;  // what weights point to besides the shards
  Weights weights;
  std::unique_ptr<MappedExpertStore> experts;
  std::vector<std::string> notices;
  std::vector<FileRange> dense;   // every token reads these
  std::vector<FileRange> sparse;  // experts and tables
};

namespace {

int64_t bytes_of(const std::vector<FileRange>& ranges) {
  int64_t bytes = 0;
  for (const FileRange& range : ranges) bytes += range.bytes;
  return bytes;
}

bool fits_memory(int64_t bytes) {
  return static_cast<double>(bytes) <=
         kFillShareMax * static_cast<double>(available_memory_bytes());
}

// DSpark stages belong to neither list: they are read when drafting asks for them.
void sort_ranges(const Shards& shards, std::vector<FileRange>* dense,
                 std::vector<FileRange>* sparse) {
  for (const auto& shard : shards)
    for (const TensorEntry& entry : shard->tensors())
      if (!is_stage(entry.name))
        (is_sparse_part(entry.name) ? sparse : dense)
            ->push_back({&shard->file(), entry.offset, entry.bytes});
}

void note_total_size(const ShardIndex& index, const Shards& shards,
                     std::vector<std::string>* notices) {
  int64_t payload = 0;
  for (const auto& shard : shards)
    for (const TensorEntry& entry : shard->tensors()) payload += entry.bytes;
  if (index.total_size && *index.total_size != payload)
    notices->push_back(fmt::format("{}: total_size is {}, the shards hold {} bytes", kIndexName,
                                   *index.total_size, payload));
}

void note_absent_parts(const Config& config, const Weights& weights,
                       std::vector<std::string>* notices) {
  if (!config.vision)
    notices->push_back("config.json has no vision_config: pictures will be refused");
  else if (!weights.vision)
    notices->push_back("the checkpoint has no vision.* tensors: pictures will be refused");
  if (config.text.num_nextn_predict_layers > 0 && weights.mtp.empty())
    notices->push_back("the checkpoint has no mtp.* tensors: no drafts");
}

void note_tokenizer(const std::string& path, std::vector<std::string>* notices) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec))
    notices->push_back(fmt::format("{}: no such file: text can't be read or written", path));
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& directory) {
  auto parts = std::make_unique<Parts>();
  parts->directory = directory;
  FATHOM_ASSIGN(const std::string config_text, read_part(directory, kConfigName, kConfigBytesMax));
  Result<Config> config = parse_config(config_text);
  if (!config) return config.status().with_context(directory + "/" + kConfigName);
  parts->config = std::move(config).value();
  parts->notices = parts->config.notices;

  FATHOM_ASSIGN(const std::string index_text,
                read_part(directory, kIndexName, kShardIndexBytesMax));
  const Result<ShardIndex> index = parse_shard_index(index_text);
  if (!index) return index.status().with_context(directory + "/" + kIndexName);
  FATHOM_ASSIGN(parts->shards, open_shards(directory, *index));
  FATHOM_TRY(check_index(*index, parts->shards).with_context(directory));

  for (const auto& shard : parts->shards) shard->file().read_neighbours(false);
  TensorBinder binder(parts->shards);
  BoundWeights bound = bind_weights(parts->config, &binder);
  FATHOM_TRY(binder.finish(kIndexName).with_context(directory));
  parts->weights = std::move(bound.weights);
  parts->owned = binder.take_owned();
  for (const std::string& name : binder.misaligned())
    parts->notices.push_back(
        fmt::format("tensor {} lies at an odd offset and was copied to memory", name));
  note_total_size(*index, parts->shards, &parts->notices);
  note_absent_parts(parts->config, parts->weights, &parts->notices);
  note_tokenizer(directory + "/" + kTokenizerName, &parts->notices);

  for (const auto& shard : parts->shards) shard->file().read_neighbours(true);
  sort_ranges(parts->shards, &parts->dense, &parts->sparse);
  std::vector<const MappedFile*> files;
  for (const auto& shard : parts->shards) files.push_back(&shard->file());
  parts->experts = std::make_unique<MappedExpertStore>(
      std::move(bound.experts), std::move(files),
      !fits_memory(bytes_of(parts->dense) + bytes_of(parts->sparse)));
  return std::unique_ptr<Checkpoint>(new Checkpoint(std::move(parts)));
}

Checkpoint::Checkpoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Checkpoint::~Checkpoint() = default;

const std::string& Checkpoint::directory() const {
  return parts_->directory;
}
const Config& Checkpoint::config() const {
  return parts_->config;
}
const Weights& Checkpoint::weights() const {
  return parts_->weights;
}
ExpertStore& Checkpoint::experts() {
  return *parts_->experts;
}
std::string Checkpoint::tokenizer_path() const {
  return parts_->directory + "/" + kTokenizerName;
}
const std::vector<std::string>& Checkpoint::notices() const {
  return parts_->notices;
}
const Shards& Checkpoint::shards() const {
  return parts_->shards;
}

Status Checkpoint::load(const LoadOptions& options) {
  const int64_t dense_bytes = bytes_of(parts_->dense);
  if (!fits_memory(dense_bytes)) {
    // Reading it now would only push out what was read first.
    log(LogLevel::kWarning,
        "every token reads {} bytes of weights, but only {} bytes of memory are free: they will be "
        "read from the disk again and again",
        dense_bytes, available_memory_bytes());
    return {};
  }
  std::vector<FileRange> ranges = parts_->dense;
  if (fits_memory(dense_bytes + bytes_of(parts_->sparse)))
    ranges.insert(ranges.end(), parts_->sparse.begin(), parts_->sparse.end());
  return load_pages(merge_ranges(std::move(ranges), kGapBytesMax), options);
}

}  // namespace fathom::v41
