// JSON on its way out.
#pragma once

#include <string>

#include "base/json.h"
#include "server/http_message.h"

namespace fathom::server {

// One line. Strings that are not valid UTF-8 get U+FFFD where they are not; never throws.
std::string json_text(const Json& json);

// 200 with this body.
HttpResponse json_response(const Json& json);

}  // namespace fathom::server
