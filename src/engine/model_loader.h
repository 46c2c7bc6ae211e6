// A model directory to something that answers: checkpoint, tokenizer, prompt profile and forward
// pass put together. Called once by a command of cli.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/thread_pool.h"
#include "engine/loaded_model.h"
#include "io/page_loader.h"

namespace fathom {

struct LoadModelOptions {
  std::string directory;
  std::string name;                  // empty: the directory's base name
  std::string policy = "reference";  // kernels/policy.h
  std::string isa;                   // empty: the best that this CPU has
  std::string cache_dir;             // for tables derived from the tokenizer; empty: none
  // Read what every token needs into memory now, rather than when it is first used.
  bool reads_weights = true;
  // A tokenizer without the markers of a chat can only continue raw text.
  bool needs_chat = true;
  std::function<void(const LoadProgress&)> progress = nullptr;
  const std::atomic<bool>* cancel = nullptr;
};

// `pool` outlives the model. Errors name the file and what to do.
Result<LoadedModel> load_model(const LoadModelOptions& options, ThreadPool& pool);

// `fathom inspect`: what a checkpoint holds, as text or JSON, without loading it.
struct InspectModelOptions {
  bool is_json = false;
  bool is_deep = false;  // reads every weight
  std::function<void(const LoadProgress&)> progress = nullptr;
};
struct InspectedModel {
  std::string text;
  bool is_good = true;  // false: reading every weight found problems, which `text` lists
};
Result<InspectedModel> inspect_model(const std::string& directory,
                                     const InspectModelOptions& options);

// For --version: the instruction set that would be used and the numeric policies there are.
Result<std::string> describe_cpu(const std::string& isa);
std::string policy_names();

}  // namespace fathom
