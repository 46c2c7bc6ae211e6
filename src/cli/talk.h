// One answer on the terminal, for run and chat: builds the request, prints as it comes, listens to
// Ctrl-C.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "cli/options.h"
#include "engine/engine.h"
#include "text/chat.h"

namespace fathom::cli {

// Raised by SIGINT while listen_for_interrupt is on.
extern std::atomic<bool> g_interrupted;
void listen_for_interrupt();

struct Conversation {
  std::vector<text::ChatMessage> messages;
  std::vector<PictureInput> pictures;  // ContentPart::picture indexes it
};

// The request for the model's next turn. Errors: no room in the context, a prompt that cannot be
// rendered.
Result<AnswerRequest> make_request(const Engine& engine, const Settings& settings,
                                   const Conversation& conversation);
// The same for a text that is the whole prompt, control tokens and all.
Result<AnswerRequest> make_raw_request(const Engine& engine, const Settings& settings,
                                       const std::string& prompt,
                                       std::vector<PictureInput> pictures);

Result<PictureInput> read_picture(const std::string& path, const LanguageModel& model);

struct TalkOptions {
  bool prints = true;  // content to standard output, reasoning to standard error
};
struct Talked {
  std::string reasoning;
  std::string content;
  bool is_interrupted = false;  // Ctrl-C: the texts are what came until then
  AnswerSummary summary;        // of an answer that ended by itself
};
Result<Talked> talk(Engine& engine, AnswerRequest request, const TalkOptions& options);

}  // namespace fathom::cli
