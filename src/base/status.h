// Status and Result<T>: how a failure of the outside world (file, request, memory) travels.
// No exception crosses a room. Each level adds its place with `with_context`.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace fathom {

// What went wrong, coarse enough to map to HTTP in one table (server) and to an exit code (cli).
enum class Code {
  kOk,
  kInvalidArgument,    // the caller's input is wrong: request, flag, picture
  kNotFound,           // a file, a model, a route that is not there
  kDataLoss,           // a file is corrupt, short or inconsistent
  kUnsupported,        // well formed, but not something Fathom does
  kResourceExhausted,  // queue full, no memory, too long
  kUnavailable,        // shutting down, no device
  kCancelled,          // the client left or asked to stop
  kDeadlineExceeded,   // a limit of time passed
  kInternal,           // non-finite values and other faults found while computing
};

const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  static Status ok() { return {}; }
  static Status error(Code code, std::string message) { return {code, std::move(message)}; }

  bool is_ok() const { return code_ == Code::kOk; }
  explicit operator bool() const { return is_ok(); }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with `place` and ": " in front; ok stays ok.
  Status with_context(const std::string& place) const {
    return is_ok() ? *this : Status(code_, place + ": " + message_);
  }

 private:
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Code code_ = Code::kOk;
  std::string message_;
};

// Shorthand: error(Code::kDataLoss, "{} has {} bytes", path, n), message in fmt syntax.
template <typename... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status::error(code, fmt::format(format, std::forward<Args>(args)...));
}

// A T or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Status status) : value_(std::move(status)) {
    FATHOM_CHECK(!std::get<Status>(value_).is_ok(), "a Result needs a value or an error");
  }

  bool is_ok() const { return value_.index() == 0; }
  explicit operator bool() const { return is_ok(); }
  Status status() const { return is_ok() ? Status() : std::get<Status>(value_); }

  T& value() & {
    FATHOM_CHECK(is_ok(), "value() of an error: {}", std::get<Status>(value_).message());
    return std::get<T>(value_);
  }
  const T& value() const& {
    FATHOM_CHECK(is_ok(), "value() of an error: {}", std::get<Status>(value_).message());
    return std::get<T>(value_);
  }
  T&& value() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }

 private:
  std::variant<T, Status> value_;
};

}  // namespace fathom

#define FATHOM_CONCAT_INNER(a, b) a##b
#define FATHOM_CONCAT(a, b) FATHOM_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression` is an error Status.
#define FATHOM_TRY(expression)                                                              \
  do {                                                                                      \
    if (::fathom::Status try_status = (expression); !try_status.is_ok()) return try_status; \
  } while (false)

// FATHOM_ASSIGN(auto file, open_file(path)); declares or assigns, or returns the error.
#define FATHOM_ASSIGN(left, expression) \
  FATHOM_ASSIGN_INNER(FATHOM_CONCAT(assign_result_, __LINE__), left, expression)
#define FATHOM_ASSIGN_INNER(result, left, expression) \
  auto result = (expression);                         \
  if (!result.is_ok()) return result.status();        \
  left = std::move(result).value()
