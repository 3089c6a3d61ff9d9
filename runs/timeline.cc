#include "runs/timeline.h"

#include <utility>

#include "runs/text.h"

namespace umpteenth::runs {
namespace {

constexpr size_t kSmallMember = 512;

void make_utf8(json::Value& value) {
  if (value.is_string()) {
    if (!is_utf8(value.as_string())) value = to_utf8(value.as_string());
  } else if (value.is_array()) {
    for (json::Value& item : value.items()) make_utf8(item);
  } else if (value.is_object()) {
    for (json::Member& member : value.members()) {
      if (!is_utf8(member.key)) member.key = to_utf8(member.key);
      make_utf8(member.value);
    }
  }
}

void clip(json::Value& value, size_t head, size_t tail) {
  if (value.is_string()) {
    value = clip_characters(value.as_string(), head, tail);
  } else if (value.is_array() || value.is_object()) {
    std::string text = value.dump();
    if (count_characters(text) > head + tail) value = clip_characters(text, head, tail);
  }
}

json::Value as_object(json::Value data) {
  make_utf8(data);
  if (data.is_object()) return data;
  json::Value object = json::Value::object();
  if (!data.is_null()) object.set("value", std::move(data));
  return object;
}

}  // namespace

json::Value clip_event(json::Value data) {
  data = as_object(std::move(data));
  for (json::Member& member : data.members()) {
    if (member.key == "arguments")
      clip(member.value, 4000, 0);
    else if (member.key == "reasoning")
      clip(member.value, 3000, 1000);
    else if (member.value.is_string())
      clip(member.value, 6000, 6000);
  }
  return data;
}

json::Value clip_call(json::Value data) {
  data = as_object(std::move(data));
  for (json::Member& member : data.members()) {
    if (member.key == "result")
      clip(member.value, 2000, 1000);
    else
      clip(member.value, 500, 0);
  }
  return data;
}

json::Value spill_large(json::Value data,
                        const std::function<std::string(std::string_view bytes)>& spill) {
  std::string text = data.dump();
  if (text.size() <= kMaxPayloadBytes) return data;
  json::Value kept = json::Value::object();
  size_t bytes = 0;
  for (const json::Member& member : data.members()) {
    const size_t size = member.key.size() + member.value.dump().size();
    if (size > kSmallMember || bytes + size > kMaxPayloadBytes / 2) continue;
    bytes += size;
    kept.set(member.key, member.value);
  }
  kept.set("spilled", json::Value::object({{"digest", spill(text)}, {"bytes", text.size()}}));
  return kept;
}

}  // namespace umpteenth::runs
