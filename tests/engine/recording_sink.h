// Keeps what an answer's sink is told, and lets a test wait for the end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer.h"

namespace fathom::testing {

class RecordingSink : public AnswerSink {
 public:
  void on_prefill(int64_t done_tokens, const AnswerUsage&) override {
    std::lock_guard lock(mu_);
    prefill_.push_back(done_tokens);
    changed_.notify_all();
  }
  void on_delta(AnswerDelta delta, const AnswerSummary&) override {
    std::lock_guard lock(mu_);
    reasoning_ += delta.reasoning;
    content_ += delta.content;
    for (TokenReport& report : delta.logprobs) reports_.push_back(std::move(report));
    ++delta_count_;
    changed_.notify_all();
  }
  void on_done(const AnswerSummary& summary) override { end(summary); }
  void on_error(const Status& status) override { end(status); }

  // The end of the answer; fails the test's expectations by a kDeadlineExceeded after 20 s.
  Result<AnswerSummary> wait() {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [&] { return end_.has_value(); }))
      return error(Code::kDeadlineExceeded, "the answer did not end");
    return *end_;
  }
  void wait_for_delta() {
    wait_until([this] { return delta_count_ > 0; });
  }
  void wait_for_prefill() {
    wait_until([this] { return !prefill_.empty(); });
  }

  std::string content() { return locked(content_); }
  std::string reasoning() { return locked(reasoning_); }
  std::vector<TokenReport> reports() { return locked(reports_); }
  std::vector<int64_t> prefill() { return locked(prefill_); }
  int end_count() { return locked(end_count_); }

 private:
  template <typename T>
  T locked(const T& value) {
    std::lock_guard lock(mu_);
    return value;
  }
  template <typename F>
  void wait_until(F condition) {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }
  void end(Result<AnswerSummary> result) {
    std::lock_guard lock(mu_);
    end_ = std::move(result);
    ++end_count_;
    changed_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::string content_, reasoning_;  // all guarded by mu_
  std::vector<TokenReport> reports_;
  std::vector<int64_t> prefill_;
  std::optional<Result<AnswerSummary>> end_;
  int end_count_ = 0;
  int delta_count_ = 0;
};

}  // namespace fathom::testing
