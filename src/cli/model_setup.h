// What run, chat and serve share: threads, the loaded model, progress on the terminal.
#pragma once

#include <atomic>
#include <memory>

#include "base/thread_pool.h"
#include "cli/options.h"
#include "engine/engine.h"

namespace fathom::cli {

// One a physical core that this process may use.
int default_thread_count();
int thread_count(const Settings& settings);

// Where derived tables are kept; empty when there is no such place.
std::string cache_directory(const Settings& settings);

// kInvalidArgument without --model: a wrong command line.
Status check_model_given(const Settings& settings);

// Loads the model named by --model and shows progress on standard error: a line that is rewritten
// on a terminal, a line every 5 s elsewhere.
Result<LoadedModel> load_from_settings(const Settings& settings, bool needs_chat, ThreadPool& pool,
                                       const std::atomic<bool>* cancel);

EngineOptions engine_options(const Settings& settings);

// --draft, whose form the table of options has checked.
DraftWish draft_wish(const Settings& settings);

// Progress of a long read as such lines. Called from one thread.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)) {}
  ~ProgressLine();
  void show(int64_t bytes_done, int64_t bytes_total, double seconds);

 private:
  const std::string what_;
  double last_shown_s_ = 0;
  bool has_open_line_ = false;
};

}  // namespace fathom::cli
