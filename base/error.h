// The one error type. Thrown for "cannot do what was asked"; caught in HTTP dispatch, the worker
// loop and main only. Its codes map 1:1 to an HTTP status and to Kubernetes' Status reasons.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umpteenth {

enum class Code {
  bad_request,             // 400 BadRequest
  unauthorized,            // 401 Unauthorized
  forbidden,               // 403 Forbidden
  not_found,               // 404 NotFound
  method_not_allowed,      // 405 MethodNotAllowed
  not_acceptable,          // 406 NotAcceptable
  already_exists,          // 409 AlreadyExists
  conflict,                // 409 Conflict
  expired,                 // 410 Expired
  too_large,               // 413 RequestEntityTooLarge
  unsupported_media_type,  // 415 UnsupportedMediaType
  invalid,                 // 422 Invalid
  too_many_requests,       // 429 TooManyRequests
  header_too_large,        // 431 (no Status reason)
  internal,                // 500 InternalError
  not_implemented,         // 501 NotImplemented
  bad_gateway,             // 502 (a peer of ours misbehaved)
  unavailable,             // 503 ServiceUnavailable
  timeout,                 // 504 Timeout
};

int http_status(Code code);
std::string_view status_reason(Code code);  // Kubernetes' metav1.StatusReason, "" where it has none
Code code_from_http_status(int status);     // internal for what is not in the set

// One field's complaint, as in Status.details.causes.
struct Cause {
  std::string field;    // path from the object's root, e.g. spec.limits.timeoutSeconds
  std::string message;  // begins with the class: `Invalid value: "x": …`, `Required value`
  std::string reason;   // FieldValueInvalid, FieldValueRequired, FieldValueNotSupported, …
  bool operator==(const Cause&) const = default;
};

class Error : public std::exception {
 public:
  // message: lower case, no final period: what was attempted, then the cause, then what to do.
  Error(Code code, std::string message, std::vector<Cause> causes = {});

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<Cause>& causes() const { return causes_; }
  std::optional<int> retry_after_seconds() const { return retry_after_; }
  const char* what() const noexcept override { return message_.c_str(); }

  Error& retry_after(int seconds);
  Error& in(std::string_view context);  // puts "context: " before the message while unwinding

 private:
  Code code_;
  std::string message_;
  std::vector<Cause> causes_;
  std::optional<int> retry_after_;
};

// Error(code) whose text ends with strerror(errno); errno is read first.
Error errno_error(Code code, std::string_view attempted);

}  // namespace umpteenth
