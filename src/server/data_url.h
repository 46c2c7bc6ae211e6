// Bytes of a picture out of a data: URL. No other scheme is ever followed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fathom::server {

// `data:[type][;params][;base64],DATA`. The declared type is not looked at. base64 in the standard
// or URL alphabet, padding optional, line ends and spaces dropped; other forms are percent-decoded.
// kUnsupported: another scheme, with the same text whatever stands behind it. kInvalidArgument:
// damaged, empty, or more than `bytes_max` bytes.
Result<std::string> decode_data_url(std::string_view url, int64_t bytes_max);

}  // namespace fathom::server
