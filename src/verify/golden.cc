#include "verify/golden.h"

#include <bit>
#include <cstring>

#include "io/read_file.h"

namespace fathom::verify {
namespace {

// Element i of a little-endian array; the file does not promise alignment.
template <typename T>
T element(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

Status decode(const std::byte* data, int64_t count, GoldenTensor* tensor) {
  for (int64_t i = 0; i < count; ++i) {
    switch (tensor->dtype) {
      case DType::kF32:
        tensor->floats.push_back(element<float>(data, i));
        break;
      case DType::kBF16:
        tensor->floats.push_back(
            std::bit_cast<float>(static_cast<uint32_t>(element<uint16_t>(data, i)) << 16));
        break;
      case DType::kI32:
        tensor->ints.push_back(element<int32_t>(data, i));
        break;
      case DType::kU8:
        tensor->ints.push_back(element<uint8_t>(data, i));
        break;
      default:
        return error(Code::kDataLoss, "tensor {} is {}; goldens hold F32, BF16, I32 and U8",
                     tensor->name, dtype_name(tensor->dtype));
    }
  }
  return Status::ok();
}

Status missing(const GoldenCase& golden, const std::string& tensor) {
  return error(Code::kDataLoss, "case {}: tensor {} is not in its file", golden.name(), tensor);
}

}  // namespace

Result<GoldenCase> GoldenCase::open(const std::string& folder, const std::string& name,
                                    Json entry) {
  GoldenCase golden;
  golden.name_ = name;
  if (!entry.is_object() || !entry.contains("kind") || !entry["kind"].is_string() ||
      !entry.contains("file") || !entry["file"].is_string())
    return error(Code::kDataLoss, "{}/index.json: case {} needs a kind and a file", folder, name);
  golden.kind_ = entry["kind"].get<std::string>();
  golden.arithmetic_ = entry.value("arithmetic", std::string("official"));
  FATHOM_ASSIGN(golden.file_,
                SafetensorsFile::open(folder + "/" + entry["file"].get<std::string>()));
  golden.entry_ = std::move(entry);
  return golden;
}

Result<const GoldenTensor*> GoldenCase::take(const std::string& tensor) {
  const TensorEntry* entry = file_->find(tensor);
  if (entry == nullptr) return missing(*this, tensor);
  taken_.insert(tensor);
  if (const auto known = decoded_.find(tensor); known != decoded_.end()) return &known->second;
  GoldenTensor decoded{.name = tensor, .dtype = entry->dtype, .rows = 1, .cols = 1};
  for (size_t i = 0; i < entry->shape.size(); ++i)
    (i == 0 ? decoded.rows : decoded.cols) *= entry->shape[i];
  FATHOM_TRY(decode(file_->data(*entry), decoded.rows * decoded.cols, &decoded));
  return &decoded_.emplace(tensor, std::move(decoded)).first->second;
}

Result<std::span<const uint8_t>> GoldenCase::take_bytes(const std::string& tensor) {
  const TensorEntry* entry = file_->find(tensor);
  if (entry == nullptr) return missing(*this, tensor);
  taken_.insert(tensor);
  return std::span(reinterpret_cast<const uint8_t*>(file_->data(*entry)),
                   static_cast<size_t>(entry->bytes));
}

std::vector<std::string> GoldenCase::untaken() const {
  std::vector<std::string> out;
  for (const TensorEntry& entry : file_->tensors())
    if (entry.bytes > 0 && !taken_.contains(entry.name)) out.push_back(entry.name);
  return out;
}

std::vector<std::string> GoldenCase::names() const {
  std::vector<std::string> out;
  for (const TensorEntry& entry : file_->tensors()) out.push_back(entry.name);
  return out;
}

Result<std::vector<TokenId>> GoldenCase::tokens(const std::string& tensor) {
  if (has(tensor)) {
    FATHOM_ASSIGN(const GoldenTensor* ids, take(tensor));
    return ids->ints;
  }
  if (!entry_.contains(tensor) || !entry_[tensor].is_array()) return missing(*this, tensor);
  std::vector<TokenId> ids;
  for (const Json& id : entry_[tensor]) {
    if (!id.is_number_integer()) return missing(*this, tensor);
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

Result<GoldenFolder> open_golden_folder(const std::string& path) {
  const std::string index = path + "/index.json";
  const Result<std::string> text = read_file(index, int64_t{64} << 20);
  if (!text) return text.status().with_context("a golden folder begins with its index");
  Result<Json> json = parse_json(*text, {.bytes_max = int64_t{64} << 20});
  if (!json) return json.status().with_context(index);
  if (!json->is_object() || !json->contains("cases") || !(*json)["cases"].is_object())
    return error(Code::kDataLoss, "{}: a golden index needs an object \"cases\"", index);
  GoldenFolder folder{.path = path, .cases = {}};
  for (const auto& [name, entry] : (*json)["cases"].items()) folder.cases.emplace_back(name, entry);
  return folder;
}

}  // namespace fathom::verify
