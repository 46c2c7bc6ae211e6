// Percent-encoding of URLs.
#pragma once

#include <string>
#include <string_view>

namespace fathom::server {

// %XX made bytes, once; a % without two hexadecimal digits stays.
std::string percent_decoded(std::string_view text);

}  // namespace fathom::server
