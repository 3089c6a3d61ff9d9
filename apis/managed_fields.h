// metadata.managedFields: who set which field, as sets of paths in FieldsV1 ({"f:spec":
// {"f:suspend": {}}}). A leaf is what is no object, or where the schema ends (lists are atomic,
// free-form JSON too).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"

namespace umpteenth::apis {

// The leaves of an object that somebody can own: spec, labels, annotations, finalizers, owners;
// with status_only those of status.
json::Value owned_fields(const Kind& kind, const json::Value& object, bool status_only = false);
// Leaves of `now` that are new or differ from `old`.
json::Value changed_fields(const Kind& kind, const json::Value& old, const json::Value& now,
                           bool status_only = false);

json::Value fields_union(const json::Value& a, const json::Value& b);
json::Value fields_without(const json::Value& a, const json::Value& b);  // a \ b
json::Value fields_common(const json::Value& a, const json::Value& b);   // a ∩ b
// ".spec.limits.maxTurns" for every leaf, as Kubernetes prints them.
std::vector<std::string> field_paths(const json::Value& fields);

struct ManagerId {
  std::string manager, operation, subresource;  // operation: Apply | Update
  bool operator==(const ManagerId&) const = default;
};
ManagerId manager_of(const json::Value& entry);

// Records that `manager` changed `fields` of `object` (operation Update): they leave every other
// entry. Entries whose fields are all gone disappear. Fields that `object` has no more leave all.
void record_update(const Kind& kind, json::Value& object, const ManagerId& by,
                   const json::Value& fields, Time now);
// Puts, replaces or (fields empty) removes the entry of `by`.
void set_entry(json::Value& object, const ManagerId& by, const std::string& api_version,
               json::Value fields, Time now);

// [] and [{}] mean "forget them all".
bool clears_managed_fields(const json::Value& managed_fields);

}  // namespace umpteenth::apis
