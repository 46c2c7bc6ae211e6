#include "cli/talk.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/model_setup.h"

namespace fathom::cli {

std::atomic<bool> g_interrupted{false};

namespace {

constexpr std::chrono::milliseconds kInterruptCheck{50};
constexpr size_t kPictureBytesMax = size_t{32} << 20;  // of io/picture, as in the HTTP API

void write_all(FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

// Prints deltas on the engine thread and wakes the waiting command at the end.
class TerminalSink : public AnswerSink {
 public:
  explicit TerminalSink(TalkOptions options)
      : options_(options), is_dimmed_(isatty(STDERR_FILENO) != 0) {}

  void on_delta(AnswerDelta delta, const AnswerSummary&) override {
    std::lock_guard lock(mu_);
    talked_.reasoning += delta.reasoning;
    talked_.content += delta.content;
    if (!options_.prints) return;
    if (!delta.reasoning.empty())
      write_all(stderr, is_dimmed_ ? "\033[2m" + delta.reasoning + "\033[0m" : delta.reasoning);
    if (!delta.content.empty()) {
      if (!has_shown_content_ && !talked_.reasoning.empty()) write_all(stderr, "\n");
      has_shown_content_ = true;
      write_all(stdout, delta.content);
    }
  }
  void on_done(const AnswerSummary& summary) override {
    std::lock_guard lock(mu_);
    talked_.summary = summary;
    end_ = Status::ok();
    ended_.notify_all();
  }
  void on_error(const Status& status) override {
    std::lock_guard lock(mu_);
    end_ = status;
    ended_.notify_all();
  }

  bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mu_);
    return ended_.wait_for(lock, time, [&] { return end_.has_value(); });
  }
  Result<Talked> take(bool is_interrupted) {
    std::lock_guard lock(mu_);
    talked_.is_interrupted = is_interrupted;
    if (!end_->is_ok() && !(is_interrupted && end_->code() == Code::kCancelled)) return *end_;
    return std::move(talked_);
  }

 private:
  const TalkOptions options_;
  const bool is_dimmed_;
  std::mutex mu_;
  std::condition_variable ended_;
  Talked talked_;  // all guarded by mu_
  std::optional<Status> end_;
  bool has_shown_content_ = false;
};

Status apply_settings(const Settings& settings, const Engine& engine, AnswerRequest* request) {
  request->id = "answer";
  SamplingParams& sampling = request->sampling;
  sampling.temperature = settings.number("--temperature").value_or(1);
  sampling.top_p = settings.number("--top-p").value_or(1);
  sampling.top_k = settings.integer("--top-k").value_or(0);
  sampling.min_p = settings.number("--min-p").value_or(0);
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = 1;
  sampling.seed =
      static_cast<uint64_t>(settings.integer("--seed").value_or(static_cast<int64_t>(random >> 1)));
  request->drafts = draft_wish(settings);
  request->answer_tokens_max = settings.integer("--max-tokens").value_or(engine.context_tokens());
  request->stop_strings = settings.list("--stop");
  const int64_t prompt_tokens = expanded_prompt_tokens(*request);
  if (request->prompt.empty()) return error(Code::kInvalidArgument, "the prompt is empty");
  if (prompt_tokens >= engine.context_tokens())
    return error(Code::kInvalidArgument,
                 "the prompt has {} tokens, the context holds {}; shorten it or raise --ctx-size",
                 prompt_tokens, engine.context_tokens());
  return Status::ok();
}

// --effort: a name, or else a number; the table of options has checked it.
void set_effort(const Settings& settings, text::ChatOptions* options) {
  const std::string effort = settings.text_or_standard("--effort");
  using text::EffortLevel;
  const std::pair<const char*, EffortLevel> names[] = {
      {"low", EffortLevel::kLow}, {"high", EffortLevel::kHigh}, {"max", EffortLevel::kMax}};
  for (const auto& [name, level] : names)
    if (effort == name) {
      options->effort = level;
      return;
    }
  options->effort_number = static_cast<int>(settings.integer_or_standard("--effort"));
}

}  // namespace

void listen_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = true; };
  sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: a read at the prompt ends too
}

Result<AnswerRequest> make_request(const Engine& engine, const Settings& settings,
                                   const Conversation& conversation) {
  const LoadedModel& loaded = engine.loaded();
  text::ChatOptions options;
  options.thinking = settings.flag("--thinking");
  set_effort(settings, &options);
  FATHOM_ASSIGN(const text::RenderedPrompt rendered,
                text::render_chat(*loaded.profile, conversation.messages, options));
  FATHOM_ASSIGN(text::EncodedPrompt prompt,
                text::encode_prompt(*loaded.tokenizer, loaded.markers, rendered));
  AnswerRequest request;
  request.prompt = std::move(prompt.ids);
  request.picture_positions = std::move(prompt.picture_positions);
  for (int index : rendered.pictures)
    request.pictures.push_back(conversation.pictures[static_cast<size_t>(index)]);
  request.starts_in_reasoning = rendered.starts_in_reasoning;
  FATHOM_TRY(apply_settings(settings, engine, &request));
  return request;
}

Result<AnswerRequest> make_raw_request(const Engine& engine, const Settings& settings,
                                       const std::string& prompt,
                                       std::vector<PictureInput> pictures) {
  const LoadedModel& loaded = engine.loaded();
  AnswerRequest request;
  request.is_raw = true;
  FATHOM_ASSIGN(request.prompt, loaded.tokenizer->encode(prompt, text::AddedTokens::kMatch));
  const TokenId image = loaded.model->info().image_token;
  for (size_t i = 0; i < request.prompt.size() && image >= 0; ++i)
    if (request.prompt[i] == image) request.picture_positions.push_back(static_cast<int64_t>(i));
  if (request.picture_positions.size() != pictures.size())
    return error(Code::kInvalidArgument, "the prompt has {} picture placeholders, --image gives {}",
                 request.picture_positions.size(), pictures.size());
  request.pictures = std::move(pictures);
  FATHOM_TRY(apply_settings(settings, engine, &request));
  return request;
}

Result<PictureInput> read_picture(const std::string& path, const LanguageModel& model) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    return error(Code::kInvalidArgument, "{}: wanted a picture, found a folder", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::kNotFound, "{}: {}", path, std::strerror(errno));
  // Pipes are welcome, but not without end; the decoder refuses what is longer.
  std::string bytes(kPictureBytesMax + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  auto picture = decode_picture_input(bytes, model);
  if (!picture) return picture.status().with_context(path);
  return picture;
}

Result<Talked> talk(Engine& engine, AnswerRequest request, const TalkOptions& options) {
  FATHOM_ASSIGN(Engine::Place place, engine.reserve());
  const auto sink = std::make_shared<TerminalSink>(options);
  const auto job = engine.submit(std::move(place), std::move(request), sink);
  bool is_interrupted = false;
  while (!sink->wait(kInterruptCheck))
    if (g_interrupted.exchange(false)) {
      is_interrupted = true;
      engine.cancel(job);
    }
  return sink->take(is_interrupted);
}

}  // namespace fathom::cli
