// The `messages` array of a chat request to typed messages (HTTP API §5.2).
#pragma once

#include <optional>

#include "base/json.h"
#include "server/api_error.h"
#include "server/chat_request.h"

namespace fathom::server {

struct MessageLimits {
  int64_t messages_max = 20'000;
  int64_t parts_max = 50'000;
  int64_t pictures_max = 16;
  int64_t picture_bytes_max = 32 << 20;   // encoded, each
  int64_t pictures_bytes_max = 64 << 20;  // encoded, together
};

// Fills request->messages and request->pictures. What was accepted once stays acceptable as
// history: only the last turn is judged for content that this model cannot take.
void parse_messages(const Json& messages, bool has_vision, const MessageLimits& limits,
                    ChatRequest* request, std::optional<ApiError>* error);

}  // namespace fathom::server
