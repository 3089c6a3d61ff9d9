#include "apis/managed_fields.h"

#include <algorithm>

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxEntries = 100;  // a hostile client cannot grow an object without end

bool is_leaf(const json::Value& fields) { return fields.empty(); }

const json::Value& none() {
  static const json::Value null;
  return null;
}

// The schema below a member, null where it ends: then the value there is one leaf.
const json::Value& below(const json::Value& schema, const std::string& key) {
  if (const json::Value* properties = schema.find("properties"))
    if (const json::Value* p = properties->find(key)) return *p;
  const json::Value& additional = schema.get("additionalProperties");
  return additional.is_object() ? additional : none();
}

bool has_members(const json::Value& schema) {
  return !schema.get("properties").empty() || schema.get("additionalProperties").is_object();
}

// Leaves of `now` not equal in `old` (null: all leaves of now).
json::Value leaves(const json::Value& schema, const json::Value* old, const json::Value& now) {
  json::Value found = json::Value::object();
  for (const json::Member& m : now.members()) {
    const json::Value* before = old ? old->find(m.key) : nullptr;
    if (before && *before == m.value) continue;
    const json::Value& sub = below(schema, m.key);
    if (m.value.is_object() && !m.value.empty() && has_members(sub)) {
      json::Value inner = leaves(sub, before && before->is_object() ? before : nullptr, m.value);
      if (!inner.empty()) found.members().push_back({"f:" + m.key, std::move(inner)});
    } else {
      found.members().push_back({"f:" + m.key, json::Value::object()});
    }
  }
  return found;
}

json::Value metadata_leaves(const json::Value* old, const json::Value& now) {
  json::Value found = json::Value::object();
  const json::Value& metadata = now.get("metadata");
  const json::Value& before = old ? old->get("metadata") : none();
  for (const char* key : {"labels", "annotations"}) {
    const json::Value& map = metadata.get(key);
    if (!map.is_object()) continue;
    json::Value inner = json::Value::object();
    for (const json::Member& m : map.members()) {
      const json::Value* was = before.get(key).find(m.key);
      if (!was || !(*was == m.value))
        inner.members().push_back({"f:" + m.key, json::Value::object()});
    }
    if (!inner.empty()) found.set(std::string("f:") + key, std::move(inner));
  }
  for (const char* key : {"finalizers", "ownerReferences"}) {
    const json::Value* list = metadata.find(key);
    if (list && !list->empty() && !(before.get(key) == *list))
      found.set(std::string("f:") + key, json::Value::object());
  }
  return found;
}

json::Value all_leaves(const Kind& kind, const json::Value* old, const json::Value& now,
                       bool status_only) {
  json::Value found = json::Value::object();
  const auto section = [&](const char* key, const json::Value& schema) {
    const json::Value& part = now.get(key);
    if (!part.is_object()) return;
    const json::Value* before = old ? old->find(key) : nullptr;
    json::Value inner = leaves(schema, before, part);
    if (!inner.empty()) found.set(std::string("f:") + key, std::move(inner));
  };
  if (status_only) {
    section("status", kind.status_schema);
    return found;
  }
  if (json::Value inner = metadata_leaves(old, now); !inner.empty())
    found.set("f:metadata", std::move(inner));
  section("spec", kind.spec_schema);
  return found;
}

void paths_below(const json::Value& fields, const std::string& path,
                 std::vector<std::string>& out) {
  for (const json::Member& m : fields.members()) {
    const std::string here = path + "." + (m.key.rfind("f:", 0) == 0 ? m.key.substr(2) : m.key);
    if (is_leaf(m.value))
      out.push_back(here);
    else
      paths_below(m.value, here, out);
  }
}

}  // namespace

json::Value owned_fields(const Kind& kind, const json::Value& object, bool status_only) {
  return all_leaves(kind, nullptr, object, status_only);
}

json::Value changed_fields(const Kind& kind, const json::Value& old, const json::Value& now,
                           bool status_only) {
  return all_leaves(kind, &old, now, status_only);
}

json::Value fields_union(const json::Value& a, const json::Value& b) {
  if (!a.is_object()) return b;
  json::Value all = a;
  if (b.is_object())
    for (const json::Member& m : b.members()) {
      json::Value* mine = all.find(m.key);
      if (!mine)
        all.members().push_back(m);
      else
        *mine = fields_union(*mine, m.value);
    }
  return all;
}

json::Value fields_without(const json::Value& a, const json::Value& b) {
  json::Value rest = json::Value::object();
  if (!a.is_object()) return rest;
  for (const json::Member& m : a.members()) {
    const json::Value* other = b.find(m.key);
    if (!other) {
      rest.members().push_back(m);
    } else if (!is_leaf(m.value) && !is_leaf(*other)) {
      json::Value inner = fields_without(m.value, *other);
      if (!inner.empty()) rest.members().push_back({m.key, std::move(inner)});
    }  // a leaf on either side covers the other
  }
  return rest;
}

json::Value fields_common(const json::Value& a, const json::Value& b) {
  json::Value common = json::Value::object();
  if (!a.is_object()) return common;
  for (const json::Member& m : a.members()) {
    const json::Value* other = b.find(m.key);
    if (!other) continue;
    if (is_leaf(m.value) || is_leaf(*other)) {
      common.members().push_back({m.key, is_leaf(m.value) ? *other : m.value});
      continue;
    }
    json::Value inner = fields_common(m.value, *other);
    if (!inner.empty()) common.members().push_back({m.key, std::move(inner)});
  }
  return common;
}

std::vector<std::string> field_paths(const json::Value& fields) {
  std::vector<std::string> out;
  if (fields.is_object()) paths_below(fields, "", out);
  return out;
}

ManagerId manager_of(const json::Value& entry) {
  return {entry.get_string("manager"), entry.get_string("operation"),
          entry.get_string("subresource")};
}

void set_entry(json::Value& object, const ManagerId& by, const std::string& api_version,
               json::Value fields, Time now) {
  json::Value& all = object["metadata"]["managedFields"];
  if (!all.is_array()) all = json::Value::array();
  auto place = std::find_if(all.items().begin(), all.items().end(),
                            [&](const json::Value& e) { return manager_of(e) == by; });
  if (fields.empty()) {
    if (place != all.items().end()) all.items().erase(place);
  } else if (place == all.items().end() || !(place->get("fieldsV1") == fields)) {
    json::Value entry = json::Value::object({{"manager", by.manager},
                                             {"operation", by.operation},
                                             {"apiVersion", api_version},
                                             {"time", format_time(now)},
                                             {"fieldsType", "FieldsV1"},
                                             {"fieldsV1", std::move(fields)}});
    if (!by.subresource.empty()) entry.set("subresource", by.subresource);
    if (place == all.items().end())
      all.push_back(std::move(entry));
    else
      *place = std::move(entry);
  }
  if (all.size() > kMaxEntries) all.items().erase(all.items().begin());
  if (all.empty()) object["metadata"].erase("managedFields");
}

void record_update(const Kind& kind, json::Value& object, const ManagerId& by,
                   const json::Value& fields, Time now) {
  json::Value& all = object["metadata"]["managedFields"];
  if (!all.is_array()) all = json::Value::array();
  json::Value mine = fields;
  const json::Value present =
      fields_union(owned_fields(kind, object), owned_fields(kind, object, true));
  for (json::Value& entry : all.items()) {
    if (!entry.get("fieldsV1").is_object()) continue;
    json::Value kept = fields_common(entry.get("fieldsV1"), present);
    if (manager_of(entry) == by)
      mine = fields_union(kept, fields);
    else
      kept = fields_without(kept, fields);
    if (!(kept == entry.get("fieldsV1")) && !(manager_of(entry) == by))
      entry.set("fieldsV1", std::move(kept));
  }
  std::erase_if(all.items(), [&](const json::Value& e) {
    return e.find("fieldsV1") && e.get("fieldsV1").empty() && !(manager_of(e) == by);
  });
  if (by.manager.empty()) {
    if (all.empty()) object["metadata"].erase("managedFields");
    return;
  }
  set_entry(object, by, kind.api_version(), std::move(mine), now);
}

bool clears_managed_fields(const json::Value& managed_fields) {
  if (!managed_fields.is_array()) return false;
  return managed_fields.empty() ||
         (managed_fields.size() == 1 && managed_fields.items()[0].is_object() &&
          managed_fields.items()[0].empty());
}

}  // namespace umpteenth::apis
