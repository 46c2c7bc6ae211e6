#include "io/read_file.h"

#include "io/mapped_file.h"

namespace fathom {

Result<std::string> read_file(const std::string& path, int64_t bytes_max) {
  FATHOM_ASSIGN(const std::unique_ptr<MappedFile> file, MappedFile::open(path));
  if (file->bytes() > bytes_max)
    return error(Code::kDataLoss, "{}: has {} bytes, at most {} are read", path, file->bytes(),
                 bytes_max);
  MappedFile::will_need(file->all().data(), file->bytes());
  return std::string(reinterpret_cast<const char*>(file->all().data()), file->all().size());
}

}  // namespace fathom
