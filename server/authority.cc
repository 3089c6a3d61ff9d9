#include "server/authority.h"

#include <algorithm>
#include <array>

#include "apis/kind.h"
#include "base/error.h"

namespace umpteenth::server {
namespace {

constexpr std::string_view kOurs = apis::kGroup;
constexpr Role kMember = Role::member, kAdmin = Role::admin, kOwner = Role::owner,
               kInstance = Role::instance_admin;

// clang-format off
constexpr Rule kRules[] = {
    // group, resource,              read,    create,    update,    remove
    {"",    "events",                kMember, kInstance, kInstance, kAdmin},
    {"",    "namespaces",            kMember, kInstance, kInstance, kOwner},
    {kOurs, "workspaces",            kMember, kInstance, kAdmin,    kOwner},
    {kOurs, "jobs",                  kMember, kMember,   kMember,   kMember},
    {kOurs, "jobs/run",              kMember, kMember,   kInstance, kInstance},
    {kOurs, "runs",                  kMember, kMember,   kMember,   kAdmin},
    {kOurs, "runs/timeline",         kMember, kInstance, kInstance, kInstance},
    {kOurs, "runs/log",              kMember, kInstance, kInstance, kInstance},
    {kOurs, "runs/artifacts",        kMember, kInstance, kInstance, kInstance},
    {kOurs, "secrets",               kMember, kMember,   kMember,   kMember},
    {kOurs, "mcpservers",            kMember, kMember,   kMember,   kMember},
    {kOurs, "playbooks",             kMember, kMember,   kMember,   kMember},
    {kOurs, "skills",                kMember, kMember,   kMember,   kMember},
    {kOurs, "modelproviders",        kMember, kAdmin,    kAdmin,    kAdmin},
    {kOurs, "gitsources",            kMember, kAdmin,    kAdmin,    kAdmin},
    {kOurs, "repositories",          kMember, kMember,   kMember,   kMember},
    {kOurs, "imagebuilds",           kMember, kMember,   kInstance, kAdmin},
    {kOurs, "workflows",             kMember, kMember,   kMember,   kMember},
    {kOurs, "workflowruns",          kMember, kMember,   kMember,   kAdmin},
    {kOurs, "gates",                 kMember, kInstance, kInstance, kAdmin},
    {kOurs, "decisions",             kMember, kMember,   kInstance, kInstance},
    {kOurs, "signingkeys",           kMember, kAdmin,    kAdmin,    kAdmin},
    {kOurs, "artifacts",             kMember, kInstance, kInstance, kAdmin},
    {kOurs, "webhookreceivers",      kMember, kMember,   kMember,   kMember},
    {kOurs, "sandboxengines",        kMember, kInstance, kInstance, kInstance},
    {kOurs, "sandboxengines/firewall", kInstance, kInstance, kInstance, kInstance},
    {kOurs, "users",                 kInstance, kInstance, kInstance, kInstance},
    {kOurs, "apitokens",             kMember, kInstance, kInstance, kInstance},
    {kOurs, "invites",               kAdmin,  kAdmin,    kAdmin,    kAdmin},
};
// clang-format on

constexpr std::array<std::string_view, 3> kReadVerbs = {"get", "list", "watch"};
constexpr std::array<std::string_view, 2> kUpdateVerbs = {"update", "patch"};
constexpr std::array<std::string_view, 2> kRemoveVerbs = {"delete", "deletecollection"};

bool is_one_of(std::string_view verb, std::span<const std::string_view> verbs) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

const Rule* find_rule(std::string_view group, std::string_view resource) {
  for (const Rule& rule : kRules)
    if (rule.group == group && rule.resource == resource) return &rule;
  return nullptr;
}

// Reading a subresource that has no row of its own (status, history, plan) is reading the object,
// and rolling it back is updating it.
bool as_object(bool reads, std::string_view subresource) {
  if (!reads) return subresource == "rollback";
  return subresource == "status" || subresource == "history" || subresource == "plan";
}

bool is_workspace(const Attributes& what) {
  return (what.group == kOurs && what.resource == "workspaces") ||
         (what.group.empty() && what.resource == "namespaces");
}

bool in_no_workspace(const Attributes& what) {
  const apis::Kind* kind = what.group == kOurs ? apis::find_kind(what.resource) : nullptr;
  return kind && !kind->namespaced();
}

// What a token never does, whatever its role.
bool sessions_only(const Attributes& what) {
  if (is_one_of(what.verb, kReadVerbs)) return false;
  return is_workspace(what) || what.resource == "apitokens" || what.resource == "invites";
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::member:
      return "Member";
    case Role::admin:
      return "Admin";
    case Role::owner:
      return "Owner";
    case Role::instance_admin:
      return "InstanceAdmin";
    case Role::none:
      break;
  }
  return "";
}

Role role_from(std::string_view text) {
  for (Role role : {Role::member, Role::admin, Role::owner, Role::instance_admin})
    if (to_string(role) == text) return role;
  const std::string message = "Unsupported value: " + json::quote(text) +
                              ": supported values: \"Member\", \"Admin\", \"Owner\", "
                              "\"InstanceAdmin\"";
  throw Error(Code::invalid, "role: " + message, {{"role", message, "FieldValueNotSupported"}});
}

std::span<const Rule> authority_rules() { return kRules; }

Role Identity::role_in(std::string_view workspace) const {
  if (instance_admin) return Role::instance_admin;
  const auto found = workspaces.find(workspace);
  return found == workspaces.end() ? Role::none : found->second;
}

Role Identity::best_role() const {
  if (instance_admin) return Role::instance_admin;
  Role best = Role::none;
  for (const auto& [workspace, role] : workspaces) best = std::max(best, role);
  return best;
}

Role needed_role(const Attributes& what) {
  const bool reads = is_one_of(what.verb, kReadVerbs);
  std::string resource = what.resource;
  if (!what.subresource.empty() && !as_object(reads, what.subresource))
    resource += "/" + what.subresource;
  const Rule* rule = find_rule(what.group, resource);
  if (!rule) return kInstance;
  if (reads) return rule->read;
  if (what.verb == "create") return rule->create;
  if (is_one_of(what.verb, kUpdateVerbs)) return rule->update;
  if (is_one_of(what.verb, kRemoveVerbs)) return rule->remove;
  return kInstance;
}

bool allowed(const Identity& who, const Attributes& what) {
  if (who.instance_admin) return true;
  if (who.api_token && sessions_only(what)) return false;
  const Role needed = needed_role(what);
  if (needed == Role::instance_admin) return false;
  if (is_workspace(what)) {
    const std::string& workspace = what.name.empty() ? what.ns : what.name;
    if (!workspace.empty()) return who.role_in(workspace) >= needed;
    return is_one_of(what.verb, kReadVerbs) && who.best_role() >= needed;
  }
  if (in_no_workspace(what)) return who.best_role() >= needed;
  if (what.ns == apis::kSystemWorkspace) return false;
  if (what.ns.empty()) return is_one_of(what.verb, kReadVerbs) && who.best_role() >= needed;
  return who.role_in(what.ns) >= needed;
}

bool may_see(const Identity& who, std::string_view group, std::string_view resource,
             std::string_view ns, std::string_view name) {
  if (who.instance_admin) return true;
  return allowed(who, {"get", std::string(group), std::string(resource), "", std::string(ns),
                       std::string(name)});
}

std::string refusal(const Identity& who, const Attributes& what) {
  std::string resource = what.resource;
  if (!what.subresource.empty()) resource += "/" + what.subresource;
  std::string text = "User " + json::quote(who.username) + " cannot " + what.verb + " resource " +
                     json::quote(resource) + " in API group " + json::quote(what.group);
  text += what.ns.empty() ? " at the cluster scope" : " in the namespace " + json::quote(what.ns);
  return text;
}

json::Value rules_review(const Identity& who, std::string_view ns) {
  json::Value rules = json::Value::array();
  const auto add = [&](json::Value verbs, std::string_view group, std::string_view resource) {
    rules.push_back(json::Value::object({{"verbs", std::move(verbs)},
                                         {"apiGroups", json::Value::array({group})},
                                         {"resources", json::Value::array({resource})}}));
  };
  if (who.instance_admin) add(json::Value::array({"*"}), "*", "*");
  for (const Rule& rule : kRules) {
    if (who.instance_admin) break;
    const size_t slash = rule.resource.find('/');
    Attributes what{
        "",
        std::string(rule.group),
        std::string(rule.resource.substr(0, slash)),
        slash == std::string_view::npos ? "" : std::string(rule.resource.substr(slash + 1)),
        std::string(ns),
        ""};
    json::Value verbs = json::Value::array();
    for (std::string_view verb :
         {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}) {
      what.verb = verb;
      if (allowed(who, what)) verbs.push_back(verb);
    }
    if (!verbs.empty()) add(std::move(verbs), rule.group, rule.resource);
  }
  for (std::string_view review : {"selfsubjectaccessreviews", "selfsubjectrulesreviews"})
    add(json::Value::array({"create"}), "authorization.k8s.io", review);
  add(json::Value::array({"create"}), "authentication.k8s.io", "selfsubjectreviews");
  json::Value paths =
      json::Value::strings({"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/metrics",
                            "/openapi", "/openapi/*", "/readyz", "/version", "/version/"});
  return json::Value::object(
      {{"resourceRules", std::move(rules)},
       {"nonResourceRules",
        json::Value::array({json::Value::object(
            {{"verbs", json::Value::array({"get"})}, {"nonResourceURLs", std::move(paths)}})})},
       {"incomplete", false}});
}

}  // namespace umpteenth::server
