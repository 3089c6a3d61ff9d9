#include "server/effect.h"

namespace umpteenth::server {
namespace {

json::Value comparable(json::Value object) {
  json::Value* meta = object.find("metadata");
  if (!meta) return object;
  meta->erase("resourceVersion");
  json::Value* owners = meta->find("managedFields");
  if (!owners || !owners->is_array()) return object;
  for (json::Value& entry : owners->items()) entry.erase("time");
  if (owners->empty()) meta->erase("managedFields");
  return object;
}

}  // namespace

bool without_effect(const json::Value& old, const json::Value& now) {
  return comparable(old) == comparable(now);
}

}  // namespace umpteenth::server
