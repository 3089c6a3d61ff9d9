#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "models/openai_wire.h"

namespace umpteenth::models {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return text.find(w) != std::string::npos; });
}

struct Complaint {
  std::string kind;     // type and code, lower case
  std::string message;  // the API's
};

// {"error": {"message","type","code"}}, {"error": "text"}, {"message": …}, or anything else.
Complaint read(std::string_view body) {
  Complaint complaint{"", std::string(body)};
  try {
    const json::Value parsed = json::parse(body);
    const json::Value& error = parsed.find("error") ? parsed.get("error") : parsed;
    if (error.is_string()) return {"", error.as_string()};
    if (!error.is_object()) return complaint;
    const auto text = [&](const char* name) {
      const json::Value& v = error.get(name);
      return v.is_string() ? v.as_string() : v.is_null() ? "" : v.dump();
    };
    return {lower(text("type") + " " + text("code")), text("message")};
  } catch (const Error&) {  // an HTML page of a proxy, say: quoted as it is
    return complaint;
  }
}

Failure failure_of(int status, const Complaint& complaint) {
  const std::string message = lower(complaint.message);
  if (has(complaint.kind, {"insufficient_quota", "billing"}) || status == 402)
    return Failure::quota;
  const bool too_long = has(complaint.kind, {"context_length_exceeded", "exceed_context_size"}) ||
                        has(message, {"maximum context length", "context window", "context length",
                                      "context size", "prompt is too long"});
  if ((status == 400 || status == 413 || status == 200) && too_long)
    return Failure::context_overflow;
  if (status == 408 || status == 409 || status == 429 || status >= 500) return Failure::transient;
  // An error inside a stream that had begun with 200 has only its words.
  if (status == 200 && has(complaint.kind + " " + message,
                           {"overloaded", "rate_limit", "rate limit", "api_error", "server_error",
                            "timeout", "unavailable", "429", "500", "502", "503", "529"}))
    return Failure::transient;
  return Failure::permanent;
}

}  // namespace

ModelError chat_error(int status, std::string_view body) {
  const Complaint complaint = read(body);
  std::string text = status == 200 ? "the model API broke off its answer"
                                   : "the model API answered " + std::to_string(status);
  if (!complaint.message.empty()) text += ": " + log::clip(complaint.message);
  return {failure_of(status, complaint), text, status == 200};
}

}  // namespace umpteenth::models
