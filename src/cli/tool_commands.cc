// fathom inspect, verify, tokenize and --version.
#include <sys/stat.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "base/json.h"
#include "cli/build_id.h"
#include "cli/command.h"
#include "cli/model_setup.h"
#include "engine/model_loader.h"
#include "text/tokenizer.h"
#include "verify/verify.h"

namespace fathom::cli {

namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int wrong_usage(const std::string& message) {
  return report(error(Code::kInvalidArgument, "{}", message)), kExitUsage;
}

// DIR/tokenizer.json, or the file itself.
std::string tokenizer_path(const std::string& path) {
  struct stat info {};
  const bool is_directory = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return is_directory ? path + "/tokenizer.json" : path;
}

Json ids_json(const std::vector<TokenId>& ids) {
  Json list = Json::array();
  for (TokenId id : ids) list.push_back(id);
  return list;
}

// One JSON string a line in, one array of ids a line out.
Status tokenize_lines(const text::Tokenizer& tokenizer, text::AddedTokens added) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    auto value = parse_json(line, {.bytes_max = int64_t{1} << 30});
    if (!value) return value.status().with_context(fmt::format("line {}", number));
    if (!value->is_string())
      return error(Code::kInvalidArgument, "line {}: wanted a JSON string", number);
    auto ids = tokenizer.encode(value->get_ref<const std::string&>(), added);
    if (!ids) return ids.status().with_context(fmt::format("line {}", number));
    print(ids_json(*ids).dump() + "\n");
  }
  return Status::ok();
}

void print_tokens(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (TokenId id : ids) print(fmt::format("{:>7}  {}\n", id, tokenizer.token_spelling(id)));
  print(fmt::format("{} tokens\n", ids.size()));
}

}  // namespace

int inspect_command(const Settings& settings) {
  if (settings.positional().empty()) return wrong_usage("fathom inspect needs a model directory");
  ProgressLine line("reading");
  InspectModelOptions options;
  options.is_json = settings.flag("--json");
  options.is_deep = settings.flag("--deep");
  options.progress = [&line](const LoadProgress& progress) {
    line.show(progress.bytes_done, progress.bytes_total, progress.seconds);
  };
  const auto result = inspect_model(settings.positional()[0], options);
  if (!result) return report(result.status());
  print(result->text);
  return result->is_good ? 0 : kExitFailed;
}

int verify_command(const Settings& settings) {
  const auto model = settings.text("--model"), golden = settings.text("--golden");
  if (!model || !golden) return wrong_usage("fathom verify needs --model DIR and --golden DIR");
  verify::VerifyOptions options;
  options.model = *model;
  options.golden = *golden;
  options.cases = settings.text("--cases").value_or("");
  const auto isa = kernels::choose_isa(settings.text("--isa").value_or(""));
  if (!isa) return report(isa.status());
  options.isa = *isa;
  const bool is_json = settings.flag("--json");
  if (!is_json)
    options.progress = [](const std::string& name) { std::fprintf(stderr, "%s\n", name.c_str()); };
  ThreadPool pool(thread_count(settings));
  const auto result = verify::verify(options, pool);
  if (!result) return report(result.status());
  print(is_json ? result->json().dump(1) + "\n" : result->text());
  return result->passed() ? 0 : kExitFailed;
}

int tokenize_command(const Settings& settings) {
  if (settings.positional().empty())
    return wrong_usage("fathom tokenize needs a model directory or a tokenizer.json");
  auto tokenizer = text::Tokenizer::load(tokenizer_path(settings.positional()[0]));
  if (!tokenizer) return report(tokenizer.status());
  const auto added =
      settings.flag("--parse-special") ? text::AddedTokens::kMatch : text::AddedTokens::kIgnore;
  if (settings.flag("--jsonl")) {
    const Status status = tokenize_lines(**tokenizer, added);
    return status.is_ok() ? 0 : report(status);
  }
  const std::string text = settings.positional().size() > 1
                               ? settings.positional()[1]
                               : std::string{std::istreambuf_iterator<char>(std::cin), {}};
  auto ids = (*tokenizer)->encode(text, added);
  if (!ids) return report(ids.status());
  print_tokens(**tokenizer, *ids);
  return 0;
}

int version_command() {
  const auto cpu = describe_cpu("");
  print(fmt::format("fathom {} ({})\ncpu: {}\ngpu: not built\npolicies: {}\n", kBuildId, kBuildType,
                    cpu ? *cpu : cpu.status().message(), policy_names()));
  return 0;
}

}  // namespace fathom::cli
