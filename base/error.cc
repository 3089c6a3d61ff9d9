#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace umpteenth {
namespace {

struct CodeRow {
  Code code;
  int status;
  std::string_view reason;
};

constexpr std::array kCodes{
    CodeRow{Code::bad_request, 400, "BadRequest"},
    CodeRow{Code::unauthorized, 401, "Unauthorized"},
    CodeRow{Code::forbidden, 403, "Forbidden"},
    CodeRow{Code::not_found, 404, "NotFound"},
    CodeRow{Code::method_not_allowed, 405, "MethodNotAllowed"},
    CodeRow{Code::not_acceptable, 406, "NotAcceptable"},
    CodeRow{Code::conflict, 409, "Conflict"},
    CodeRow{Code::already_exists, 409, "AlreadyExists"},
    CodeRow{Code::expired, 410, "Expired"},
    CodeRow{Code::too_large, 413, "RequestEntityTooLarge"},
    CodeRow{Code::unsupported_media_type, 415, "UnsupportedMediaType"},
    CodeRow{Code::invalid, 422, "Invalid"},
    CodeRow{Code::too_many_requests, 429, "TooManyRequests"},
    CodeRow{Code::header_too_large, 431, ""},
    CodeRow{Code::internal, 500, "InternalError"},
    CodeRow{Code::not_implemented, 501, "NotImplemented"},
    CodeRow{Code::bad_gateway, 502, ""},
    CodeRow{Code::unavailable, 503, "ServiceUnavailable"},
    CodeRow{Code::timeout, 504, "Timeout"},
};

const CodeRow& row(Code code) {
  for (const CodeRow& r : kCodes)
    if (r.code == code) return r;
  return kCodes[14];
}

}  // namespace

int http_status(Code code) { return row(code).status; }
std::string_view status_reason(Code code) { return row(code).reason; }

Code code_from_http_status(int status) {
  for (const CodeRow& r : kCodes)
    if (r.status == status) return r.code;
  return Code::internal;
}

Error::Error(Code code, std::string message, std::vector<Cause> causes)
    : code_(code), message_(std::move(message)), causes_(std::move(causes)) {}

Error& Error::retry_after(int seconds) {
  retry_after_ = seconds;
  return *this;
}

Error& Error::in(std::string_view context) {
  message_ = std::string(context) + ": " + message_;
  return *this;
}

Error errno_error(Code code, std::string_view attempted) {
  const int saved = errno;
  return Error(code, std::string(attempted) + ": " + std::strerror(saved));
}

}  // namespace umpteenth
