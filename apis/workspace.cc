#include "apis/workspace.h"

#include <set>

#include "apis/cells.h"
#include "apis/formats.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

Node member() {
  return object("One member: a user or a group.",
                {{"user", text("User name or email address.").max_length(320)},
                 {"group", text("Group of the identity provider.").max_length(320)},
                 {"role", text("Member: jobs, runs, secrets. Admin: also providers, settings, "
                               "members. Owner: also delete and transfer. Absent: Member.")
                              .one_of({"Member", "Admin", "Owner"})}});
}

Node spec() {
  return section(
      "A namespace of jobs and the people who share it.",
      {{"displayName", text("Name for people, at most 200 characters.").max_length(200)},
       {"members", list("Who may do what, at most 1000.", member()).max_items(1000)},
       {"defaults",
        section("What jobs get that do not say it.",
                {{"image",
                  text("Sandbox image; empty: the instance's.").max_length(512).by_default("")},
                 {"model", model_ref()},
                 {"resources", resources()},
                 {"network", text("Network mode of a job without one.")
                                 .one_of({"Internet", "AllowedDomains", "None"})
                                 .by_default("Internet")}})},
       {"limits",
        section(
            "Bounds of the whole workspace.",
            {{"dailySpendUSD",
              number("US dollars a UTC day; 0 = off.").range(0, 1000000).by_default(0)},
             {"maxConcurrentRuns",
              integer("Runs at a time, 1 to 1000; the rest wait.").range(1, 1000).by_default(3)}})},
       {"retention", section("How long things stay.",
                             {{"days", integer("Days, 1 to 3650, for timelines and artifacts.")
                                           .range(1, 3650)
                                           .by_default(90)}})},
       {"notifications",
        object("A webhook that is told.",
               {{"url", text("Where.").max_length(2048).format("uri").required()},
                {"secret", resource_name("Secret whose value signs the body.").max_length(100)},
                {"events", list("What about; absent: RunFailed.",
                                text("Event.").one_of({"RunFailed", "RunFellBack", "JobDemoted"}))
                               .unique()}})}});
}

void check_workspace(const json::Value& object, const json::Value*, std::vector<Cause>& causes) {
  const std::string name = object.get("metadata").get_string("name");
  if (name.find('.') != std::string::npos)
    causes.push_back({"metadata.name",
                      "Invalid value: " + json::quote(name) +
                          ": a workspace is a namespace, so its name must be " +
                          std::string(format_rule("dns-label")),
                      "FieldValueInvalid"});
  const json::Value& members = object.at_path({"spec", "members"});
  if (!members.is_array()) return;
  std::set<std::string> seen;
  for (size_t i = 0; i < members.size(); ++i) {
    const json::Value& m = members.items()[i];
    const std::string path = "spec.members[" + std::to_string(i) + "]";
    const std::string user = m.get_string("user"), group = m.get_string("group");
    if (user.empty() == group.empty())
      causes.push_back({path, "Invalid value: object: exactly one of user and group must be set",
                        "FieldValueInvalid"});
    else if (!seen.insert(user.empty() ? "g:" + group : "u:" + user).second)
      causes.push_back({path, "Duplicate value: " + json::quote(user.empty() ? group : user),
                        "FieldValueDuplicate"});
  }
}

}  // namespace

WorkspaceSpec workspace_spec_from(const json::Value& v) {
  WorkspaceSpec s;
  s.display_name = v.get_string("displayName");
  if (const json::Value& members = v.get("members"); members.is_array())
    for (const json::Value& m : members.items())
      s.members.push_back(
          {m.get_string("user"), m.get_string("group"), m.get_string("role", "Member")});
  const json::Value& defaults = v.get("defaults");
  s.defaults.image = defaults.get_string("image");
  s.defaults.model = model_ref_from(defaults.get("model"));
  s.defaults.resources = resources_from(defaults.get("resources"));
  s.defaults.network = network_mode_from(defaults.get_string("network", "Internet"));
  s.daily_spend_usd = v.get("limits").get_double("dailySpendUSD", s.daily_spend_usd);
  s.max_concurrent_runs = v.get("limits").get_int("maxConcurrentRuns", s.max_concurrent_runs);
  s.retention_days = v.get("retention").get_int("days", s.retention_days);
  return s;
}

json::Value to_json(const WorkspaceSpec& s) {
  json::Value v = json::Value::object();
  if (!s.display_name.empty()) v.set("displayName", s.display_name);
  for (const WorkspaceSpec::Member& m : s.members) {
    json::Value one = json::Value::object();
    if (!m.user.empty()) one.set("user", m.user);
    if (!m.group.empty()) one.set("group", m.group);
    one.set("role", m.role);
    v["members"].push_back(std::move(one));
  }
  json::Value defaults = json::Value::object({{"image", s.defaults.image}});
  if (s.defaults.model != ModelRef()) defaults.set("model", to_json(s.defaults.model));
  defaults.set("resources", to_json(s.defaults.resources));
  defaults.set("network", to_string(s.defaults.network));
  v.set("defaults", std::move(defaults));
  v.set("limits", json::Value::object({{"dailySpendUSD", s.daily_spend_usd},
                                       {"maxConcurrentRuns", s.max_concurrent_runs}}));
  v.set("retention", json::Value::object({{"days", s.retention_days}}));
  return v;
}

const Kind& workspace_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "Workspace";
    k.plural = "workspaces";
    k.singular = "workspace";
    k.short_names = {"ws"};
    k.categories = {"umpteenth"};
    k.scope = Scope::cluster;
    k.max_name = 63;
    k.description = "A namespace: members and roles, defaults, limits, retention.";
    k.spec_schema = spec().take();
    k.status_schema =
        schema::status(
            {{"members", integer("Members, users and groups.").at_least(0)},
             {"jobs", integer("Jobs in it.").at_least(0)},
             {"spendTodayUSD",
              number("US dollars since 00:00 UTC, of runs that have ended.").at_least(0)}})
            .take();
    k.columns = {
        {"Members", "integer", "Number of members.", 0,
         [](const json::Value& o, Time) {
           return json::Value(o.at_path({"spec", "members"}).size());
         }},
        at("Jobs", "integer", "Number of jobs.", {"status", "jobs"}),
        {"Spend Today", "string", "US dollars since 00:00 UTC.", 0, [](const json::Value& o, Time) {
           return json::Value(format_usd(o.get("status").get_double("spendTodayUSD")));
         }}};
    k.check = check_workspace;
    k.verbs = kAllVerbs;
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
