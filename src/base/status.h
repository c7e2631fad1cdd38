// How a failure of the outside world (a file, a flag, a request, memory)
// travels: by value, as one line that names what failed, where, what was
// expected and what was found. Used by every folder; any thread.
// Our own bugs are CHECKs (check.h); kernels cannot fail.
#ifndef SLUICE_SRC_BASE_STATUS_H_
#define SLUICE_SRC_BASE_STATUS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/check.h"

namespace sluice {

enum class StatusCode {
  kOk,
  kInvalidArgument,  // a flag or request value out of its range
  kNotFound,         // no such file, model, tensor
  kUnsupported,      // well formed, but nothing here can run it
  kCorrupt,          // a file that contradicts itself or its format
  kIo,               // the operating system said no
  kOutOfMemory,
  kCancelled,
  kTooLong,  // a request that can never fit
  kBusy,     // no room now; later there may be
};

// One line for people; no trailing full stop or newline.
class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure with `context` and ": " put before its message.
  Status Within(std::string_view context) const {
    return ok() ? *this : Status(code_, std::string(context) + ": " + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(runtime/explicit)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(runtime/explicit)
    CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    CHECK(ok());
    return *value_;
  }
  T&& value() && {
    CHECK(ok());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

#define SLUICE_CONCAT_(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_(a, b)
// Returns from the enclosing function if `expr` (a Status) is an error.
#define RETURN_IF_ERROR(expr)                                             \
  do {                                                                    \
    if (::sluice::Status status_ = (expr); !status_.ok()) return status_; \
  } while (0)
// ASSIGN_OR_RETURN(auto x, F()): x = the value, or returns the error.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(lhs, expr, SLUICE_CONCAT(result_, __LINE__))
#define ASSIGN_OR_RETURN_(lhs, expr, tmp) \
  auto tmp = (expr);                      \
  if (!tmp.ok()) return tmp.status();     \
  lhs = *std::move(tmp)

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_STATUS_H_
