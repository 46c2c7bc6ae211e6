#include "base/status.h"

namespace fathom {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kDataLoss:
      return "data loss";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kCancelled:
      return "cancelled";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace fathom
