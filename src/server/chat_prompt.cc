#include "server/chat_prompt.h"

#include <utility>

namespace fathom::server {

Result<ChatPrompt> make_chat_prompt(const ChatRequest& chat, const LoadedModel& loaded) {
  ChatPrompt prompt;
  FATHOM_ASSIGN(prompt.rendered, text::render_chat(*loaded.profile, chat.messages, chat.options));
  FATHOM_ASSIGN(prompt.encoded,
                text::encode_prompt(*loaded.tokenizer, loaded.markers, prompt.rendered));
  return prompt;
}

ApiError prompt_error(const Status& status) {
  ApiError error = api_error(status);
  error.param = "messages";
  return error;
}

}  // namespace fathom::server
