// A kind as it is served under a group and version: our own kinds, and core/v1's Namespace (a view
// of Workspace) and Event.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"
#include "apis/serve.h"
#include "base/error.h"
#include "base/json.h"
#include "store/store.h"

namespace umpteenth::server {

struct Resource {
  const apis::Kind* kind = nullptr;
  std::string group;      // "" = core
  std::string version;    // v1alpha1, v1
  std::string stored_as;  // the store's kind: "workspaces" for namespaces

  bool is_view() const { return stored_as != kind->plural; }
  std::string group_version() const { return group.empty() ? version : group + "/" + version; }
  std::string qualified() const {
    return group.empty() ? kind->plural : kind->plural + "." + group;
  }
  bool offers(std::string_view verb) const;
  // The object as served, compact JSON; the record's own text where it is no view.
  std::string text_of(const store::Record& record) const;
  json::Value object_of(const store::Record& record) const;
  apis::ErrorSubject subject(std::string_view name) const;
};

// Null where the path names nothing that is served.
const Resource* find_resource(std::string_view group, std::string_view version,
                              std::string_view plural);
const std::vector<Resource>& resources();

json::Value namespace_of_workspace(const json::Value& workspace);

// Errors in Kubernetes' words.
Error not_found(const Resource& resource, std::string_view name);
Error already_exists(const Resource& resource, std::string_view name);
Error conflict(const Resource& resource, std::string_view name, std::string_view why);
Error modified(const Resource& resource, std::string_view name);
Error no_such_route();
Error method_not_allowed();
Error invalid_field(const std::string& field, const std::string& message,
                    const std::string& reason);

}  // namespace umpteenth::server
