// tokenizer.json from outside: refused by name or loaded, never a crash. A tokenizer that loads
// must keep its promise: the ids of a text stand for the text's bytes.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/engram_token_map.h"
#include "text/prompt_profile.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom::text;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const TokenizerLimits limits = {.file_bytes_max = 1 << 20, .token_count_max = 1 << 14};
  const auto tokenizer = Tokenizer::parse(bytes, limits);
  if (!tokenizer) {
    FATHOM_CHECK(!tokenizer.status().message().empty(), "an error without a message");
    return 0;
  }
  build_engram_token_map(**tokenizer);
  for (const PromptProfile& profile : prompt_profiles())
    static_cast<void>(find_markers(**tokenizer, profile).is_ok());
  for (const auto added : {AddedTokens::kIgnore, AddedTokens::kMatch}) {
    // The input is a text as good as any, and it holds the file's own tokens.
    const auto ids = (*tokenizer)->encode(bytes, added);
    if (!ids) continue;
    std::string joined;
    for (const auto id : *ids) joined += (*tokenizer)->token_bytes(id);
    FATHOM_CHECK(joined == bytes, "the ids stand for other bytes than the text");
  }
  return 0;
}
