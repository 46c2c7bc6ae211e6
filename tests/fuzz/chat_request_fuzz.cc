// The body of POST /v1/chat/completions from outside: a typed request or an error that names what
// is wrong, never a crash. What was accepted must be within the limits that the engine counts on.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/chat_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom::server;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  constexpr ChatRequestRules kRules{
      .body_bytes_max = 1 << 20, .vocab_count = 2048, .has_vision = true};
  const ChatRequestOrError parsed = parse_chat_request(body, kRules);
  if (parsed.error) {
    FATHOM_CHECK(parsed.error->status == 400 && !parsed.error->message.empty(),
                 "status {} with message \"{}\"", parsed.error->status, parsed.error->message);
    return 0;
  }
  const ChatRequest& request = parsed.request;
  FATHOM_CHECK(!request.messages.empty(), "a request without messages was accepted");
  FATHOM_CHECK(request.answer_tokens_max.value_or(1) > 0, "an answer of no tokens");
  FATHOM_CHECK(request.sampling.temperature >= 0 && request.sampling.temperature <= 2,
               "temperature {}", request.sampling.temperature);
  for (const std::string& stop : request.stop_strings)
    FATHOM_CHECK(!stop.empty(), "an empty stop string");
  for (const fathom::LogitBias& bias : request.sampling.logit_bias)
    FATHOM_CHECK(bias.token >= 0 && bias.token < kRules.vocab_count, "bias of {}", bias.token);
  for (const auto& message : request.messages)
    for (const auto& part : message.content)
      FATHOM_CHECK(part.picture < static_cast<int>(request.pictures.size()), "picture {} of {}",
                   part.picture, request.pictures.size());
  return 0;
}
