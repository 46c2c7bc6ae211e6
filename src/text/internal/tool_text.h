// Tools in the prompt: their declaration, and earlier calls (spec prompt-encoding §7).
#pragma once

#include <span>

#include "base/status.h"
#include "text/chat.h"
#include "text/internal/prompt_writer.h"

namespace fathom::text::internal {

// The block that is appended to the system text. kInvalidArgument names the tool.
Status write_tool_declarations(const PromptProfile& profile, std::span<const ToolDefinition> tools,
                               PromptWriter* out);

// The calls of one assistant message, without the blank line before them.
void write_tool_calls(const PromptProfile& profile, std::span<const ToolCall> calls,
                      PromptWriter* out);

}  // namespace fathom::text::internal
