// What the model is given for a chat request: its messages rendered by the model's profile and
// encoded by its tokenizer.
#pragma once

#include "engine/loaded_model.h"
#include "server/api_error.h"
#include "server/chat_request.h"

namespace fathom::server {

struct ChatPrompt {
  text::RenderedPrompt rendered;
  text::EncodedPrompt encoded;
};

// kInvalidArgument names the message (from 0) that cannot be rendered.
Result<ChatPrompt> make_chat_prompt(const ChatRequest& chat, const LoadedModel& loaded);

// That failure as the client is told it: of the parameter `messages`.
ApiError prompt_error(const Status& status);

}  // namespace fathom::server
