// Collects a prompt as stretches of different trust.
#pragma once

#include <string>
#include <string_view>

#include "text/chat.h"

namespace fathom::text::internal {

class PromptWriter {
 public:
  void trusted(std::string_view text) { append(text, true); }     // written by the encoder
  void untrusted(std::string_view text) { append(text, false); }  // came with the request
  void picture(std::string_view marker, int index) {
    trusted(marker);
    prompt_.pictures.push_back(index);
  }
  void set_starts_in_reasoning(bool value) { prompt_.starts_in_reasoning = value; }

  RenderedPrompt take() { return std::move(prompt_); }

 private:
  void append(std::string_view text, bool is_trusted) {
    if (text.empty()) return;
    if (prompt_.segments.empty() || prompt_.segments.back().is_trusted != is_trusted)
      prompt_.segments.push_back({{}, is_trusted});
    prompt_.segments.back().text += text;
  }

  RenderedPrompt prompt_;
};

}  // namespace fathom::text::internal
