// Status documents: errors on the wire.
#include "apis/serve.h"

namespace umpteenth::apis {
namespace {

Code code_of(const json::Value& status, int http_status) {
  constexpr Code kAll[] = {Code::bad_request,
                           Code::unauthorized,
                           Code::forbidden,
                           Code::not_found,
                           Code::method_not_allowed,
                           Code::not_acceptable,
                           Code::already_exists,
                           Code::conflict,
                           Code::expired,
                           Code::too_large,
                           Code::unsupported_media_type,
                           Code::invalid,
                           Code::too_many_requests,
                           Code::internal,
                           Code::not_implemented,
                           Code::unavailable,
                           Code::timeout};
  const std::string reason = status.get_string("reason");
  if (!reason.empty())
    for (const Code c : kAll)
      if (status_reason(c) == reason) return c;
  return code_from_http_status(http_status);
}

}  // namespace

json::Value status_of(const Error& error, const ErrorSubject& subject) {
  json::Value details = json::Value::object();
  const auto put = [&details](const char* key, const std::string& text) {
    if (!text.empty()) details.set(key, text);
  };
  put("name", subject.name);
  put("group", subject.group);
  put("kind",
      error.code() == Code::invalid && !subject.kind.empty() ? subject.kind : subject.resource);
  for (const Cause& c : error.causes()) {
    json::Value cause = json::Value::object({{"reason", c.reason}, {"message", c.message}});
    if (!c.field.empty()) cause.set("field", c.field);
    details["causes"].push_back(std::move(cause));
  }
  if (const auto seconds = error.retry_after_seconds()) details.set("retryAfterSeconds", *seconds);
  json::Value status = json::Value::object({{"kind", "Status"},
                                            {"apiVersion", "v1"},
                                            {"metadata", json::Value::object()},
                                            {"status", "Failure"},
                                            {"message", error.message()}});
  if (const std::string_view reason = status_reason(error.code()); !reason.empty())
    status.set("reason", reason);
  if (!details.empty()) status.set("details", std::move(details));
  status.set("code", http_status(error.code()));
  return status;
}

Error error_from_status(const json::Value& status, int http_status) {
  const json::Value& details = status.get("details");
  std::vector<Cause> causes;
  if (const json::Value& list = details.get("causes"); list.is_array())
    for (const json::Value& c : list.items())
      causes.push_back({c.get_string("field"), c.get_string("message"), c.get_string("reason")});
  std::string message = status.get_string("message");
  if (message.empty()) message = "the server answered with status " + std::to_string(http_status);
  Error error(code_of(status, http_status), std::move(message), std::move(causes));
  if (const int64_t seconds = details.get_int("retryAfterSeconds"); seconds > 0)
    error.retry_after(static_cast<int>(seconds));
  return error;
}

}  // namespace umpteenth::apis
