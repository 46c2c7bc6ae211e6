#include "tests/model/deepseek_v41/damaged_checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "io/read_file.h"
#include "io/safetensors.h"

namespace fathom::v41 {

namespace fs = std::filesystem;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr int64_t kFileBytesMax = 64 << 20;

Json read_json(const std::string& path) {
  return *parse_json(*read_file(path, kFileBytesMax));
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::vector<RawTensor> read_tensors(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  std::vector<RawTensor> tensors;
  for (const TensorEntry& entry : (*file)->tensors())
    tensors.push_back({entry.name, entry.dtype, entry.shape,
                       std::string(reinterpret_cast<const char*>((*file)->data(entry)),
                                   static_cast<size_t>(entry.bytes))});
  return tensors;
}

}  // namespace

std::string raw_safetensors(const std::vector<RawTensor>& tensors) {
  Json header = Json::object();
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data += tensor.data;
  }
  std::string text = header.dump();
  if (text.size() % 2 == 0) text += ' ';
  const uint64_t length = text.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text + data;
}

DamagedCheckpoint::DamagedCheckpoint(const std::string& golden) {
  static std::atomic<int> made = 0;
  directory_ = fmt::format("{}fathom_checkpoint_{}_{}", testing::TempDir(), ::getpid(), made++);
  fs::create_directories(directory_);
  const std::string source =
      std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + golden + "/checkpoint";
  for (const auto& file : fs::directory_iterator(source)) {
    const fs::path to = fs::path(directory_) / file.path().filename();
    fs::copy_file(file.path(), to);
    fs::permissions(to, fs::perms::owner_write, fs::perm_options::add);
  }
}

DamagedCheckpoint::~DamagedCheckpoint() {
  fs::remove_all(directory_);
}

std::string DamagedCheckpoint::shard_of(const std::string& tensor) const {
  return read_json(path(kIndex))["weight_map"].at(tensor).get<std::string>();
}

void DamagedCheckpoint::edit_json(const std::string& file,
                                  const std::function<void(Json&)>& edit) const {
  Json json = read_json(path(file));
  edit(json);
  write(path(file), json.dump());
}

void DamagedCheckpoint::edit_index(const std::function<void(Json&)>& edit) const {
  edit_json(kIndex, [&](Json& json) { edit(json["weight_map"]); });
}

void DamagedCheckpoint::edit_shard(const std::string& tensor,
                                   const std::function<void(std::vector<RawTensor>&)>& edit) const {
  const std::string file = path(shard_of(tensor));
  std::vector<RawTensor> tensors = read_tensors(file);
  edit(tensors);
  write(file, raw_safetensors(tensors));
}

void DamagedCheckpoint::edit_tensor(const std::string& tensor,
                                    const std::function<void(RawTensor&)>& edit) const {
  edit_shard(tensor, [&](std::vector<RawTensor>& tensors) {
    for (RawTensor& candidate : tensors)
      if (candidate.name == tensor) return edit(candidate);
    ADD_FAILURE() << tensor << " is not in its shard";
  });
}

void DamagedCheckpoint::forget_tensors(
    const std::function<bool(const std::string&)>& is_gone) const {
  std::set<std::string> shards;
  edit_index([&](Json& map) {
    const Json before = map;
    for (const auto& [name, shard] : before.items())
      if (is_gone(name)) {
        shards.insert(shard.get<std::string>());
        map.erase(name);
      }
  });
  for (const std::string& shard : shards) {
    std::vector<RawTensor> tensors = read_tensors(path(shard));
    std::erase_if(tensors, [&](const RawTensor& tensor) { return is_gone(tensor.name); });
    write(path(shard), raw_safetensors(tensors));
  }
}

void DamagedCheckpoint::append(const std::string& file, const std::string& bytes) const {
  std::ofstream(path(file), std::ios::binary | std::ios::app) << bytes;
}

void DamagedCheckpoint::resize(const std::string& file, int64_t delta) const {
  fs::resize_file(path(file),
                  static_cast<uintmax_t>(static_cast<int64_t>(fs::file_size(path(file))) + delta));
}

void DamagedCheckpoint::replace(const std::string& file, const std::string& content) const {
  write(path(file), content);
}

void DamagedCheckpoint::remove(const std::string& file) const {
  fs::remove(path(file));
}

}  // namespace fathom::v41
