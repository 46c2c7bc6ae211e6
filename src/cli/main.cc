// fathom COMMAND [OPTIONS]: finds the command, reads its settings, runs it.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/command.h"

namespace fathom::cli {

namespace {

void set_log_level_from(const Settings& settings) {
  const std::string level = settings.text_or_standard("--log-level");
  const std::pair<const char*, LogLevel> levels[] = {{"error", LogLevel::kError},
                                                     {"warning", LogLevel::kWarning},
                                                     {"info", LogLevel::kInfo},
                                                     {"debug", LogLevel::kDebug}};
  for (const auto& [name, value] : levels)
    if (level == name) set_log_level(value);
}

int dispatch(const Command& command, const Settings& settings) {
  if (command.name == "run") return run_command(settings);
  if (command.name == "chat") return chat_command(settings);
  if (command.name == "serve") return serve_command(settings);
  if (command.name == "inspect") return inspect_command(settings);
  if (command.name == "verify") return verify_command(settings);
  if (command.name == "tokenize") return tokenize_command(settings);
  return bench_command(settings);
}

int main_of(std::vector<std::string> words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(help_text().c_str(), words.empty() ? stderr : stdout);
    return words.empty() ? kExitUsage : 0;
  }
  if (words[0] == "--version" || words[0] == "version") return version_command();
  const auto command = find_command(words[0]);
  if (!command) return report(command.status()), kExitUsage;
  words.erase(words.begin());
  for (const std::string& word : words)
    if (word == "--help" || word == "-h") {
      std::fputs(help_text(**command).c_str(), stdout);
      return 0;
    }
  const auto settings = parse_settings(**command, words, fathom_environment());
  if (!settings) return report(settings.status()), kExitUsage;
  set_log_level_from(*settings);
  return dispatch(**command, *settings);
}

// Writing can fail as well: a full disk or a reader that left is a failure of the command.
int finish_output(int code) {
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written || code != 0) return code;
  return report(error(Code::kDataLoss, "standard output could not be written"));
}

}  // namespace

int report(const Status& status) {
  std::fprintf(stderr, "fathom: %s\n", status.message().c_str());
  if (status.code() == Code::kCancelled) return kExitInterrupted;
  return kExitFailed;
}

}  // namespace fathom::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of the write, not of us
  using fathom::cli::finish_output;
  using fathom::cli::main_of;
  return finish_output(main_of(std::vector<std::string>(argv + 1, argv + argc)));
}
