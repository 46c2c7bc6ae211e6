// fathom run and fathom chat.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/model_setup.h"
#include "cli/talk.h"

namespace fathom::cli {

namespace {

text::ChatMessage message_of(text::Role role, std::string text) {
  text::ChatMessage message;
  message.role = role;
  message.content.push_back(text::ContentPart::of_text(std::move(text)));
  return message;
}

void add_picture(PictureInput picture, text::ChatMessage* message, Conversation* conversation) {
  message->content.push_back(
      text::ContentPart::of_picture(static_cast<int>(conversation->pictures.size())));
  conversation->pictures.push_back(std::move(picture));
}

Json json_of(const Talked& talked, const AnswerRequest& request) {
  const AnswerUsage& usage = talked.summary.usage;
  const AnswerTimings& timings = talked.summary.timings;
  const DraftTally drafts = total_of(talked.summary.drafts);
  return {{"content", talked.content},
          {"reasoning", talked.reasoning},
          {"finish_reason", talked.is_interrupted                          ? "interrupted"
                            : talked.summary.reason == FinishReason::kStop ? "stop"
                                                                           : "length"},
          {"seed", request.sampling.seed},
          {"usage",
           {{"prompt_tokens", usage.prompt_tokens},
            {"image_tokens", usage.image_tokens},
            {"completion_tokens", usage.completion_tokens},
            {"reasoning_tokens", usage.reasoning_tokens}}},
          {"timings",
           {{"image_ms", timings.picture_ms},
            {"prompt_ms", timings.prefill_ms},
            {"predicted_ms", timings.decode_ms},
            {"draft_n", drafts.judged},
            {"draft_n_accepted", drafts.accepted}}}};
}

Status check_prompt_given(const Settings& settings) {
  if (settings.text("--prompt")) return Status::ok();
  return error(Code::kInvalidArgument, "no --prompt given; --prompt - reads standard input");
}

// The prompt as text: as given, or standard input for "-".
std::string prompt_text(const Settings& settings) {
  std::string prompt = *settings.text("--prompt");
  if (prompt != "-") return prompt;
  return std::string{std::istreambuf_iterator<char>(std::cin), {}};
}

Result<AnswerRequest> run_request(const Engine& engine, const Settings& settings) {
  const std::string prompt = prompt_text(settings);
  Conversation conversation;
  text::ChatMessage question;
  for (const std::string& path : settings.list("--image")) {
    FATHOM_ASSIGN(PictureInput picture, read_picture(path, *engine.loaded().model));
    add_picture(std::move(picture), &question, &conversation);
  }
  if (settings.flag("--raw"))
    return make_raw_request(engine, settings, prompt, std::move(conversation.pictures));
  if (const auto system = settings.text("--system"))
    conversation.messages.push_back(message_of(text::Role::kSystem, *system));
  question.content.push_back(text::ContentPart::of_text(prompt));
  conversation.messages.push_back(std::move(question));
  return make_request(engine, settings, conversation);
}

// Small talk of a terminal program goes to standard error only when somebody looks.
void be_quiet_unless_asked(const Settings& settings) {
  if (!settings.text("--log-level")) set_log_level(LogLevel::kWarning);
}

// --- chat ---

constexpr const char* kChatHelp =
    "/image FILE  add a picture to the next message\n"
    "/new         forget everything so far\n"
    "/quit        end (also Ctrl-D); Ctrl-C stops an answer\n";

class Chat {
 public:
  Chat(Engine& engine, const Settings& settings) : engine_(engine), settings_(settings) { begin(); }

  int loop() {
    std::fprintf(stderr, "%s. /help lists the commands.\n", engine_.loaded().name.c_str());
    std::string line;
    while (read_line(&line)) {
      if (line.empty()) continue;
      if (line[0] == '/') {
        if (!obey(line)) return 0;
        continue;
      }
      answer(line);
    }
    return 0;
  }

 private:
  void begin() {
    conversation_ = {};
    next_ = {};
    if (const auto system = settings_.text("--system"))
      conversation_.messages.push_back(message_of(text::Role::kSystem, *system));
  }

  // False at the end of the input.
  bool read_line(std::string* line) {
    while (true) {
      if (isatty(STDIN_FILENO)) std::fputs("\n> ", stderr);
      if (std::getline(std::cin, *line)) return true;
      if (!g_interrupted.exchange(false)) return false;
      std::cin.clear();
      clearerr(stdin);
      std::fputs("\n(Ctrl-D or /quit ends)", stderr);
    }
  }

  // False: the user wants to leave.
  bool obey(const std::string& line) {
    const std::string word = line.substr(0, line.find(' '));
    const std::string rest = word.size() < line.size() ? line.substr(word.size() + 1) : "";
    if (word == "/quit" || word == "/exit") return false;
    if (word == "/new") {
      begin();
    } else if (word == "/image") {
      auto picture = read_picture(rest, *engine_.loaded().model);
      if (!picture) return report(picture.status()), true;
      add_picture(std::move(*picture), &next_, &conversation_);
      std::fprintf(stderr, "%s will go with the next message\n", rest.c_str());
    } else {
      std::fputs(kChatHelp, stderr);
    }
    return true;
  }

  void answer(const std::string& line) {
    text::ChatMessage question = std::exchange(next_, {});
    question.content.push_back(text::ContentPart::of_text(line));
    conversation_.messages.push_back(std::move(question));
    auto request = make_request(engine_, settings_, conversation_);
    auto talked =
        request ? talk(engine_, std::move(*request), {}) : Result<Talked>(request.status());
    if (!talked) {
      report(talked.status());
      conversation_.messages.pop_back();
      return;
    }
    std::fputs(talked->is_interrupted ? " [stopped]\n" : "\n", stdout);
    std::fflush(stdout);
    text::ChatMessage reply = message_of(text::Role::kAssistant, talked->content);
    reply.reasoning = talked->reasoning;
    conversation_.messages.push_back(std::move(reply));
  }

  Engine& engine_;
  const Settings& settings_;
  Conversation conversation_;
  text::ChatMessage next_;  // pictures that wait for the next line
};

}  // namespace

int run_command(const Settings& settings) {
  be_quiet_unless_asked(settings);
  for (const Status& status : {check_model_given(settings), check_prompt_given(settings)})
    if (!status.is_ok()) return report(status), kExitUsage;
  listen_for_interrupt();
  ThreadPool pool(thread_count(settings));
  auto loaded = load_from_settings(settings, !settings.flag("--raw"), pool, &g_interrupted);
  if (!loaded) return report(loaded.status());
  Engine engine(std::move(*loaded), engine_options(settings));
  auto request = run_request(engine, settings);
  if (!request) return report(request.status());
  const bool is_json = settings.flag("--json");
  const auto talked = talk(engine, *request, {.prints = !is_json});
  if (!talked) return report(talked.status());
  const std::string end =
      is_json ? json_of(*talked, *request).dump(-1, ' ', false, Json::error_handler_t::replace)
              : "";
  std::printf("%s\n", end.c_str());
  return talked->is_interrupted ? kExitInterrupted : 0;
}

int chat_command(const Settings& settings) {
  be_quiet_unless_asked(settings);
  if (const Status status = check_model_given(settings); !status.is_ok())
    return report(status), kExitUsage;
  listen_for_interrupt();
  ThreadPool pool(thread_count(settings));
  auto loaded = load_from_settings(settings, /*needs_chat=*/true, pool, &g_interrupted);
  if (!loaded) return report(loaded.status());
  Engine engine(std::move(*loaded), engine_options(settings));
  return Chat(engine, settings).loop();
}

}  // namespace fathom::cli
