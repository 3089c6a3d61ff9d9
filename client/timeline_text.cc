#include "client/timeline_text.h"

#include <algorithm>

#include "client/printable.h"

namespace umpteenth::client {
namespace {

std::string one_line(std::string text, size_t max) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  text = printable_line(text);
  if (text.size() > max) {
    size_t cut = max;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    text = text.substr(0, cut) + "…";
  }
  return text;
}

std::string scalar(const json::Value& v) { return v.is_string() ? v.as_string() : v.dump(); }

// What matters of an event: the named members, in this order; one that is true is shown by its
// name.
std::string picked(const json::Value& data, std::initializer_list<std::string_view> keys) {
  std::string text;
  for (std::string_view key : keys) {
    const json::Value* v = data.find(key);
    if (!v || v->is_null() || (v->is_string() && v->as_string().empty())) continue;
    if (v->is_bool() && !v->as_bool()) continue;
    const std::string shown = v->is_bool()                               ? std::string(key)
                              : key == "durationMs"                      ? "(" + v->dump() + " ms)"
                              : key == "error"                           ? "error: " + scalar(*v)
                              : key == "arguments" && v->find("command") ? scalar(v->get("command"))
                                                                         : scalar(*v);
    // umpd's own words end with the cause; what models and commands say has no such end.
    text += (text.empty() ? "" : "  ") +
            one_line(shown, key == "message" || key == "error" ? 500 : 160);
  }
  return text;
}

}  // namespace

std::string timeline_line(const json::Value& event) {
  const std::string type = event.get_string("type");
  const json::Value& nested = event.get("data");
  const json::Value& data = nested.is_object() ? nested : event;
  std::string text;
  if (type == "run.status")
    text = picked(data, {"phase", "reason", "message"});
  else if (type == "tool.call")
    text = picked(data, {"name", "tool", "command", "arguments"});
  else if (type == "tool.result")
    text = picked(data, {"text", "durationMs"});
  else if (type == "llm.call")
    text = picked(data, {"model", "error", "retried", "text", "durationMs"});
  else if (type == "finish")
    text = picked(data, {"status", "summary"});
  else if (type == "script.step" || type == "broker.call")
    text = picked(data, {"name"});
  else if (type == "sandbox.image_wait")
    text = picked(data, {"image", "durationMs"});
  else if (type == "sandbox.create")
    text = picked(data, {"engine", "runtime", "network", "container", "durationMs"});
  else if (type == "sandbox.destroy")
    text = picked(data, {"durationMs"});
  else
    text = picked(data, {"message", "text", "name", "reason"});
  if (text.empty()) {
    json::Value rest = data;
    for (const char* key : {"seq", "time", "type"}) rest.erase(key);
    text = one_line(rest.dump(), 200);
  }
  const std::string time = event.get_string("time");
  std::string head = (time.size() >= 19 ? time.substr(11, 8) : time) + "  " + type;
  head.resize(std::max<size_t>(head.size() + 2, 30), ' ');
  return head + text;
}

}  // namespace umpteenth::client
