#include "io/safetensors_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/json.h"

namespace fathom {

namespace {

Status check_tensors(std::span<const TensorToWrite> tensors) {
  for (const TensorToWrite& tensor : tensors) {
    int64_t bytes = dtype_bytes(tensor.dtype);
    for (int64_t dim : tensor.shape) bytes *= dim;
    if (bytes != static_cast<int64_t>(tensor.data.size()))
      return error(Code::kInvalidArgument, "tensor \"{}\": its shape wants {} bytes, data has {}",
                   tensor.name, bytes, tensor.data.size());
  }
  return {};
}

// The JSON header for tensors laid out in this order, padded so that data begins on 8 bytes.
Result<std::string> header_text(std::span<const TensorToWrite* const> order) {
  Json header = Json::object();
  size_t at = 0;
  for (const TensorToWrite* tensor : order) {
    if (header.contains(tensor->name))
      return error(Code::kInvalidArgument, "tensor \"{}\" is given twice", tensor->name);
    header[tensor->name] = {{"dtype", dtype_name(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {at, at + tensor->data.size()}}};
    at += tensor->data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// An empty span has no address, and fwrite may not be given none.
bool write_all(std::FILE* file, std::span<const std::byte> bytes) {
  return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors) {
  FATHOM_TRY(check_tensors(tensors));
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, [](const TensorToWrite* a, const TensorToWrite* b) {
    return dtype_bytes(a->dtype) > dtype_bytes(b->dtype);
  });
  FATHOM_ASSIGN(const std::string text, header_text(order));

  const std::string part = path + ".part";
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr)
    return error(Code::kDataLoss, "{}: cannot write: {}", part, std::strerror(errno));
  const uint64_t length = text.size();
  bool is_written = std::fwrite(&length, sizeof(length), 1, file) == 1 &&
                    std::fwrite(text.data(), 1, text.size(), file) == text.size();
  for (const TensorToWrite* tensor : order)
    is_written = is_written && write_all(file, tensor->data);
  int reason = errno;
  if (std::fclose(file) != 0 && is_written) {
    is_written = false;
    reason = errno;
  }
  if (is_written && std::rename(part.c_str(), path.c_str()) == 0) return {};
  if (is_written) reason = errno;
  std::remove(part.c_str());
  return error(Code::kDataLoss, "{}: cannot write: {}", path, std::strerror(reason));
}

}  // namespace fathom
