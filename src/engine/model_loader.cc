#include "engine/model_loader.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "base/log.h"
#include "io/mapping_fault.h"
#include "kernels/isa.h"
#include "kernels/policy.h"
#include "model/deepseek_v41/checkpoint.h"
#include "model/deepseek_v41/inspect.h"
#include "model/deepseek_v41/model.h"
#include "text/engram_token_map.h"

namespace fathom {

namespace {

std::string base_name(const std::string& directory) {
  auto path = std::filesystem::path(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  return name.empty() || name == "." || name == ".." ? "model" : name;
}

Status add_chat(const LoadModelOptions& options, LoadedModel* loaded) {
  FATHOM_ASSIGN(loaded->profile, text::find_prompt_profile("v41"));
  auto markers = text::find_markers(*loaded->tokenizer, *loaded->profile);
  if (markers) {
    loaded->markers = *markers;
    return Status::ok();
  }
  if (options.needs_chat) return markers.status();
  log(LogLevel::kWarning, "only raw text can be continued: {}", markers.status().message());
  loaded->profile = nullptr;
  const ModelInfo& info = loaded->model->info();
  loaded->markers.bos = info.bos_token;
  loaded->markers.eos = info.eos_token;
  loaded->markers.user = loaded->markers.assistant = loaded->markers.think_open =
      loaded->markers.think_close = loaded->markers.dsml = -1;
  return Status::ok();
}

}  // namespace

Result<LoadedModel> load_model(const LoadModelOptions& options, ThreadPool& pool) {
  explain_mapping_faults();
  FATHOM_ASSIGN(std::unique_ptr<v41::Checkpoint> opened, v41::Checkpoint::open(options.directory));
  const std::shared_ptr<v41::Checkpoint> checkpoint = std::move(opened);
  for (const std::string& notice : checkpoint->notices()) log(LogLevel::kInfo, "{}", notice);

  LoadedModel loaded;
  loaded.name = options.name.empty() ? base_name(options.directory) : options.name;
  FATHOM_ASSIGN(loaded.tokenizer, text::Tokenizer::load(checkpoint->tokenizer_path()));

  const v41::TextConfig& config = checkpoint->config().text;
  v41::ModelOptions model_options;
  model_options.policy = options.policy;
  FATHOM_ASSIGN(model_options.isa, kernels::choose_isa(options.isa));
  if (!config.engram_layer_ids.empty()) {
    FATHOM_ASSIGN(text::EngramTokenMap map,
                  text::load_engram_token_map(*loaded.tokenizer, options.cache_dir,
                                              config.engram_compressed_vocab_size));
    model_options.token_map = std::move(map.compressed_of);
  }
  if (options.reads_weights)
    FATHOM_TRY(checkpoint->load(
        {.thread_count = 2, .progress = options.progress, .cancel = options.cancel}));
  const v41::InspectReport report = v41::inspect_checkpoint(*checkpoint);
  loaded.parameter_count = report.parameters;
  loaded.payload_bytes = report.payload_bytes;
  FATHOM_ASSIGN(loaded.model, v41::Model::create(checkpoint, pool, std::move(model_options)));
  FATHOM_TRY(add_chat(options, &loaded));
  return loaded;
}

Result<InspectedModel> inspect_model(const std::string& directory,
                                     const InspectModelOptions& options) {
  v41::InspectOptions inspect{
      .is_json = options.is_json, .is_deep = options.is_deep, .reading = {}};
  inspect.reading.progress = options.progress;
  FATHOM_ASSIGN(v41::InspectResult result, v41::run_inspect(directory, inspect));
  return InspectedModel{std::move(result.output), result.is_good};
}

Result<std::string> describe_cpu(const std::string& isa) {
  FATHOM_ASSIGN(const kernels::Isa chosen, kernels::choose_isa(isa));
  return kernels::describe_isa(chosen);
}

std::string policy_names() {
  std::string names;
  for (const kernels::Policy& policy : kernels::policies())
    names += (names.empty() ? "" : ", ") + std::string(policy.name);
  return names;
}

}  // namespace fathom
