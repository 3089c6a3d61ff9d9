#include "client/merge.h"

#include "apis/object.h"

namespace umpteenth::client {

json::Value three_way_patch(const json::Value& last_applied, const json::Value& live,
                            const json::Value& wanted) {
  json::Value patch = json::Value::object();
  for (const json::Member& m : wanted.members()) {
    const json::Value* now = live.find(m.key);
    if (now && m.value.is_object() && now->is_object()) {
      json::Value inner = three_way_patch(last_applied.get(m.key), *now, m.value);
      if (!inner.empty()) patch.set(m.key, std::move(inner));
    } else if (m.value.is_null() ? now != nullptr : !now || !(*now == m.value)) {
      patch.set(m.key, m.value);
    }
  }
  if (last_applied.is_object())
    for (const json::Member& m : last_applied.members())
      if (!wanted.find(m.key) && live.find(m.key)) patch.set(m.key, nullptr);
  return patch;
}

std::string last_applied_text(json::Value manifest) {
  if (json::Value* metadata = manifest.find("metadata"))
    if (json::Value* annotations = metadata->find("annotations")) {
      annotations->erase(apis::kLastApplied);
      if (annotations->empty()) metadata->erase("annotations");
    }
  manifest.erase("status");
  return manifest.dump() + "\n";
}

}  // namespace umpteenth::client
