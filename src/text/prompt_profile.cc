#include "text/prompt_profile.h"

#include <algorithm>

namespace fathom::text {

namespace {

// Protocol constants: byte for byte what the models were trained on.
constexpr std::string_view kEffortH =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n\n";
constexpr std::string_view kEffortM =
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: "
    "exhaustively decompose the problem into its most fundamental components, trace every causal "
    "chain to its root, and resolve the underlying cause rather than any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from multiple angles "
    "and are certain that no assumption remains unchecked and no error remains undiscovered.\n\n";

#define FATHOM_EFFORT_BEFORE "Reasoning Effort: "
#define FATHOM_EFFORT_AFTER \
  " (range 1-100, the higher the value, the more thorough the reasoning)\n\n"

constexpr PromptProfile kProfiles[] = {
    {.name = "v41",
     .system_marker = "<｜System｜>",
     .has_system_turns = true,
     .effort_low = FATHOM_EFFORT_BEFORE "50" FATHOM_EFFORT_AFTER,
     .effort_high = FATHOM_EFFORT_BEFORE "75" FATHOM_EFFORT_AFTER,
     .effort_max = FATHOM_EFFORT_BEFORE "100" FATHOM_EFFORT_AFTER,
     .effort_before_number = FATHOM_EFFORT_BEFORE,
     .effort_after_number = FATHOM_EFFORT_AFTER,
     .image_marker = "<｜deepseek_image｜>",
     .calls_tag = " calls",
     .invoke_tag = " invoke",
     .parameter_tag = " parameter"},
    {.name = "v4-0731",
     .effort_high = kEffortH,
     .effort_max = kEffortM,
     .calls_tag = "tool_calls",
     .invoke_tag = "invoke",
     .parameter_tag = "parameter"},
    {.name = "v4-preview",
     .effort_max = kEffortH,
     .calls_tag = "tool_calls",
     .invoke_tag = "invoke",
     .parameter_tag = "parameter"},
};

// A vocabulary of the released size must have the released ids (spec §2.1).
constexpr int64_t kReleasedVocabCount = 129'280;
struct ReleasedId {
  std::string_view content;
  TokenId id;
};
constexpr ReleasedId kReleasedIds[] = {
    {kBos, 0},
    {kEos, 1},
    {kUser, 128803},
    {kAssistant, 128804},
    {kThinkOpen, 128821},
    {kThinkClose, 128822},
    {kDsml, 128825},
    {kLatestReminder, 128828},
    {"<｜action｜>", 128829},
    {"<｜query｜>", 128830},
    {"<｜authority｜>", 128831},
    {"<｜domain｜>", 128832},
    {"<｜title｜>", 128836},
    {"<｜read_url｜>", 128845},
    {"<｜System｜>", 128799},
    {"<｜deepseek_image｜>", 129264},
};

// The id of one marker, or why this tokenizer does not go with the profile.
Result<TokenId> find_marker(const Tokenizer& tokenizer, const PromptProfile& profile,
                            std::string_view content) {
  const auto id = tokenizer.added_token(content);
  if (!id)
    return error(Code::kUnsupported,
                 "prompt profile {} needs the added token {}, which tokenizer.json does not have; "
                 "is it another model's file?",
                 profile.name, content);
  if (tokenizer.vocab_count() != kReleasedVocabCount) return *id;
  const auto* released = std::find_if(std::begin(kReleasedIds), std::end(kReleasedIds),
                                      [&](const ReleasedId& r) { return r.content == content; });
  if (released != std::end(kReleasedIds) && released->id != *id)
    return error(Code::kUnsupported,
                 "added token {} has id {} in tokenizer.json, {} in the released one", content, *id,
                 released->id);
  return *id;
}

}  // namespace

std::span<const PromptProfile> prompt_profiles() {
  return kProfiles;
}

Result<const PromptProfile*> find_prompt_profile(std::string_view name) {
  std::string names;
  for (const PromptProfile& profile : kProfiles) {
    if (profile.name == name) return &profile;
    names += (names.empty() ? "" : ", ") + std::string(profile.name);
  }
  return error(Code::kNotFound, "no prompt profile \"{}\"; there are {}", name, names);
}

std::vector<TokenId> MarkerIds::end_of_turn() const {
  std::vector<TokenId> ids = {eos, bos, user};
  if (system >= 0) ids.push_back(system);
  return ids;
}

Result<MarkerIds> find_markers(const Tokenizer& tokenizer, const PromptProfile& profile) {
  MarkerIds ids;
  struct Wanted {
    std::string_view content;
    TokenId* id;
  };
  TokenId unused = 0;
  std::vector<Wanted> wanted = {{kBos, &ids.bos},
                                {kEos, &ids.eos},
                                {kUser, &ids.user},
                                {kAssistant, &ids.assistant},
                                {kThinkOpen, &ids.think_open},
                                {kThinkClose, &ids.think_close},
                                {kDsml, &ids.dsml},
                                {kLatestReminder, &unused}};
  for (const std::string_view marker : kTaskMarkers) wanted.push_back({marker, &unused});
  if (!profile.image_marker.empty()) wanted.push_back({profile.image_marker, &ids.image});
  if (!profile.system_marker.empty()) wanted.push_back({profile.system_marker, &ids.system});
  for (const Wanted& marker : wanted) {
    FATHOM_ASSIGN(*marker.id, find_marker(tokenizer, profile, marker.content));
  }
  return ids;
}

}  // namespace fathom::text
