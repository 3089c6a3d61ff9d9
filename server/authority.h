// Who may do what: one table kind × verb × role, as data. RBAC answers, `can-i`, rules reviews and
// the exhaustive test all read it. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace umpteenth::server {

enum class Role { none, member, admin, owner, instance_admin };
std::string_view to_string(Role role);  // Member | Admin | Owner | InstanceAdmin
Role role_from(std::string_view text);  // Error(invalid) names the four

// The least role each group of verbs needs. A resource that has no row is InstanceAdmin's alone.
struct Rule {
  std::string_view group;     // "" = core
  std::string_view resource;  // plural, or plural/subresource
  Role read;                  // get list watch
  Role create;
  Role update;  // update patch
  Role remove;  // delete deletecollection
};
std::span<const Rule> authority_rules();

struct Identity {
  std::string username, uid;
  bool instance_admin = false;
  bool api_token = false;  // acts with a role, but never manages members, workspaces or tokens
  std::map<std::string, Role, std::less<>> workspaces;

  Role role_in(std::string_view workspace) const;
  Role best_role() const;  // the highest of any workspace
};

struct Attributes {
  std::string verb, group, resource, subresource, ns, name;
};

Role needed_role(const Attributes& what);
// With ns "" for a kind that lives in workspaces (list, watch): true where any workspace allows it;
// what is answered is then filtered by may_see.
bool allowed(const Identity& who, const Attributes& what);
// May `who` read an object of this resource in this workspace.
bool may_see(const Identity& who, std::string_view group, std::string_view resource,
             std::string_view ns, std::string_view name);

// `User "u" cannot delete resource "jobs" in API group "umpteenth.dev" in the namespace "x"`
std::string refusal(const Identity& who, const Attributes& what);

// SelfSubjectRulesReview's status for one workspace.
json::Value rules_review(const Identity& who, std::string_view ns);

}  // namespace umpteenth::server
