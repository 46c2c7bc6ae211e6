// A scripted model with a byte tokenizer, for tests of the engine and the server: it answers at
// once, slowly, never, or with a fault, as the test wishes.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/loaded_model.h"

namespace fathom::testing {

// What the fake does. Read by the engine thread, changed by tests between requests only, except
// the atomics.
struct FakeScript {
  // The answer to the last user turn's text. Thinking prompts get reasoning_of + </think> first.
  std::function<std::string(const std::string& user)> answer_of = [](const std::string& user) {
    return "You said: " + user;
  };
  std::function<std::string(const std::string& user)> reasoning_of = [](const std::string& user) {
    return "The user said " + std::to_string(user.size()) + " bytes.";
  };
  bool never_ends = false;                  // the answer is repeated until somebody stops it
  bool is_flat = false;                     // letters drawn at random instead of an answer
  std::atomic<int64_t> forward_ms{0};       // time of one forward; watches the cancel flag
  std::atomic<int64_t> row_us{0};           // and in addition of each row
  std::atomic<int64_t> fails_at{-1};        // position whose forward fails with kInternal
  std::atomic<int64_t> nan_at{-1};          // position whose logits hold a NaN
  int64_t sequence_tokens_max = INT64_MAX;  // new_sequence fails above

  // Whether the drafter guesses the token of a position right.
  std::function<bool(int64_t position)> drafts_well = [](int64_t) { return true; };
  std::atomic<int64_t> draft_fails_at{-1};  // token count at which draft fails with kInternal

  // What happened.
  std::atomic<int64_t> forward_count{0};
  std::atomic<int64_t> rows_count{0};
  std::atomic<int64_t> draft_count{0};
  std::atomic<int64_t> sequences_alive{0};
};

// 256 byte tokens, a few merges, then the markers of profile v41. kFakeVocab tokens.
std::unique_ptr<text::Tokenizer> make_fake_tokenizer();

struct Fake {
  std::shared_ptr<FakeScript> script;
  LoadedModel loaded;
};

// `draft_tokens` > 0: with a drafter of that block.
Fake make_fake(int64_t context_tokens = 4096, bool has_vision = true, int64_t draft_tokens = 0);

}  // namespace fathom::testing
