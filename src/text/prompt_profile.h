// The prompt dialects of the DeepSeek-V4 family as data (spec prompt-encoding §1, §6, §7).
// One is picked when a checkpoint is loaded, never per request.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/tokenizer.h"

namespace fathom::text {

// How hard the model thinks is a sentence of the prompt, not a limit.
enum class EffortLevel { kLow, kHigh, kMax };

struct PromptProfile {
  std::string_view name = {};
  std::string_view system_marker = {};  // written before system text; empty: bare text after BOS
  bool has_system_turns = false;  // a later system message is a turn; else it joins a user turn

  // Thinking mode only: what stands before the system text, whole, for each level.
  std::string_view effort_low = {};
  std::string_view effort_high = {};
  std::string_view effort_max = {};
  // An effort of 1..100 may be asked for: before + number + after. Empty: it may not.
  std::string_view effort_before_number = {};
  std::string_view effort_after_number = {};

  std::string_view image_marker = {};  // placeholder of a picture; empty: no pictures

  // What follows ｜DSML｜ in the tool tags. V4.1's begin with a space.
  std::string_view calls_tag = {};
  std::string_view invoke_tag = {};
  std::string_view parameter_tag = {};
};

// "v41", "v4-0731" or "v4-preview"; kNotFound lists the names.
Result<const PromptProfile*> find_prompt_profile(std::string_view name);
std::span<const PromptProfile> prompt_profiles();

// Markers that every profile uses.
inline constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUser = "<｜User｜>";
inline constexpr std::string_view kAssistant = "<｜Assistant｜>";
inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kDsml = "｜DSML｜";
inline constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";
inline constexpr std::string_view kTaskMarkers[] = {"<｜action｜>",    "<｜query｜>",
                                                    "<｜authority｜>", "<｜domain｜>",
                                                    "<｜title｜>",     "<｜read_url｜>"};

// Ids of the markers in one tokenizer.
struct MarkerIds {
  TokenId bos = 0;
  TokenId eos = 0;
  TokenId user = 0;
  TokenId assistant = 0;
  TokenId think_open = 0;
  TokenId think_close = 0;
  TokenId dsml = 0;
  TokenId image = -1;   // -1: the profile takes no pictures
  TokenId system = -1;  // -1: the profile has no system marker

  // Sampling one of these ends the turn: EOS, and defensively BOS and the markers of other roles.
  std::vector<TokenId> end_of_turn() const;
};

// kUnsupported when a marker is not an added token of this tokenizer (a V4.1 prompt on a V4
// tokenizer would fall apart silently), or, in a vocabulary of the released size, has another id
// than the released one.
Result<MarkerIds> find_markers(const Tokenizer& tokenizer, const PromptProfile& profile);

}  // namespace fathom::text
