#include "engine/picture_input.h"

#include <span>
#include <utility>

#include "base/sha256.h"
#include "io/picture/decode.h"
#include "model/language_model.h"

namespace fathom {

Result<PictureInput> decode_picture_input(std::string_view bytes, const LanguageModel& model) {
  if (!model.info().has_vision)
    return error(Code::kUnsupported, "this model has no vision tower and cannot see pictures");
  const std::span<const uint8_t> data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  FATHOM_ASSIGN(const PictureInfo info, probe_picture(data));
  if (const Status status = check_picture_limits(info, {}); !status.is_ok())
    return Status::error(Code::kResourceExhausted, status.message());
  PictureInput input;
  FATHOM_ASSIGN(input.token_count, model.picture_token_count(info.width, info.height));
  FATHOM_ASSIGN(input.image, decode_picture(data));
  input.content_id = sha256_hex(bytes);
  return input;
}

}  // namespace fathom
