// A picture of a request on its way to the model: bytes checked and decoded before the request is
// queued, so that a bad picture is refused while there is still somebody to tell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "io/picture/rgb_image.h"

namespace fathom {

class LanguageModel;

struct PictureInput {
  RgbImage image;
  int64_t token_count = 0;  // span positions in the prompt
  std::string content_id;   // digest of the encoded bytes, so never of a name or an address
};

// Sniffs the format from `bytes` (a declared type is nobody's business), reads the size first and
// refuses what the limits or the model cannot take before any pixel is decoded.
// kInvalidArgument: damaged; kResourceExhausted: over a limit; kUnsupported: a format that is not
// read, or a model without vision.
Result<PictureInput> decode_picture_input(std::string_view bytes, const LanguageModel& model);

}  // namespace fathom
