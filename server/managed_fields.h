// Server-side apply over field ownership (metadata.managedFields). A list is one leaf. Pure.
#pragma once

#include <string>

#include "apis/kind.h"
#include "base/clock.h"
#include "base/json.h"

namespace umpteenth::server {

struct Manager {
  const apis::Kind& kind;
  std::string name;
  std::string subresource;  // "" | "status"
  Time now;
};

// The object with `applied` laid over it. Fields of the manager's own set before that are no longer
// applied and owned by nobody else are removed. Error(conflict) names fields and managers unless
// `force`. live: null on create.
json::Value server_side_apply(const json::Value& live, const json::Value& applied,
                              const Manager& manager, bool force);

// kubectl keeps its last applied document in an annotation; where there is one, an apply by kubectl
// renews it.
void refresh_last_applied(json::Value& merged, const json::Value& applied);

// Equal but for resourceVersion and managedFields.
bool same_but_for_owners(const json::Value& a, const json::Value& b);
bool same_owners(const json::Value& a, const json::Value& b);  // times do not count

}  // namespace umpteenth::server
