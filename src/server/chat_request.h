// The body of POST /v1/chat/completions as types. All JSON of a request ends here: what is
// accepted, clamped, ignored or refused is decided in chat_request.cc and message_parser.cc (HTTP
// API §5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/draft_wish.h"
#include "engine/sampling.h"
#include "server/api_error.h"
#include "text/chat.h"

namespace fathom::server {

struct RequestPicture {
  std::string bytes;  // encoded, as the client sent it
  std::string path;   // messages[0].content[1].image_url.url, for errors
};

struct ChatRequest {
  std::string model;
  std::vector<text::ChatMessage> messages;  // ContentPart::picture indexes `pictures`
  std::vector<RequestPicture> pictures;
  text::ChatOptions options;

  bool stream = false;
  bool include_usage = false;
  bool timings_per_token = false;
  bool return_progress = false;
  bool excludes_reasoning = false;    // thinks, but the text is dropped
  bool reasoning_in_content = false;  // <think>...</think> inside content

  std::optional<int64_t> answer_tokens_max;  // absent: the server's default; INT64_MAX: -1 was sent
  int64_t answer_tokens_min = 0;
  bool ignores_end_of_turn = false;
  std::vector<std::string> stop_strings;
  std::vector<TokenId> stop_tokens;
  bool includes_stop_string = false;

  SamplingParams sampling;       // seed is set below
  std::optional<uint64_t> seed;  // absent: random
  DraftWish drafts;
  bool wants_logprobs = false;
  int top_logprobs = 0;
  bool may_reuse_prefix = true;
};

// What the parser must know of the server and its model.
struct ChatRequestRules {
  int64_t body_bytes_max = 64 << 20;
  int64_t vocab_count = 0;
  bool has_vision = false;
  bool thinks_by_default = true;
  double default_temperature = 1.0;
  double default_top_p = 1.0;
  DraftWish default_drafts = {};
};

struct ChatRequestOrError {
  ChatRequest request;
  std::optional<ApiError> error;
};

ChatRequestOrError parse_chat_request(std::string_view body, const ChatRequestRules& rules);

}  // namespace fathom::server
