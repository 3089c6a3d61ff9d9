#include "server/authority.h"

#include <gtest/gtest.h>

#include "apis/kind.h"
#include "base/error.h"
#include "server/resource.h"

namespace umpteenth::server {
namespace {

const std::vector<std::string> kVerbs = {"get",    "list",  "watch",  "create",
                                         "update", "patch", "delete", "deletecollection"};

Identity a_member_of(const std::string& workspace, Role role) {
  Identity who;
  who.username = "u";
  who.workspaces[workspace] = role;
  return who;
}

// kind → the least role for read, create, update, remove; written down a second time, by hand.
struct Expected {
  const char *group, *resource;
  Role read, create, update, remove;
};
constexpr Role M = Role::member, A = Role::admin, O = Role::owner, I = Role::instance_admin;
constexpr Expected kExpected[] = {
    {"umpteenth.dev", "workspaces", M, I, A, O},
    {"umpteenth.dev", "jobs", M, M, M, M},
    {"umpteenth.dev", "runs", M, M, M, A},
    {"umpteenth.dev", "secrets", M, M, M, M},
    {"umpteenth.dev", "modelproviders", M, A, A, A},
    {"umpteenth.dev", "sandboxengines", M, I, I, I},
    {"", "namespaces", M, I, I, O},
    {"", "events", M, I, I, A},
};

Role expected_role(const Expected& row, const std::string& verb) {
  if (verb == "get" || verb == "list" || verb == "watch") return row.read;
  if (verb == "create") return row.create;
  return verb == "update" || verb == "patch" ? row.update : row.remove;
}

TEST(Authority, every_served_kind_has_a_row) {
  for (const Resource& r : resources()) {
    bool found = false;
    for (const Rule& rule : authority_rules())
      found |= rule.group == r.group && rule.resource == r.kind->plural;
    EXPECT_TRUE(found) << r.qualified();
  }
}

TEST(Authority, rows_are_unique) {
  for (const Rule& a : authority_rules())
    for (const Rule& b : authority_rules())
      EXPECT_TRUE(&a == &b || a.group != b.group || a.resource != b.resource) << a.resource;
}

TEST(Authority, every_kind_verb_and_role) {
  int checked = 0;
  for (const Resource& r : resources()) {
    const Expected* row = nullptr;
    for (const Expected& e : kExpected)
      if (e.group == r.group && e.resource == r.kind->plural) row = &e;
    ASSERT_NE(row, nullptr) << r.qualified() << " is not in the expected table";
    for (const std::string& verb : kVerbs)
      for (Role role : {Role::none, M, A, O, I}) {
        Identity who = a_member_of("web", role);
        who.instance_admin = role == I;
        const bool workspace = r.kind->plural == "workspaces" || r.kind->plural == "namespaces";
        const std::string ns = r.kind->namespaced() ? "web" : "";
        const Attributes what{verb, r.group, r.kind->plural, "", ns, workspace ? "web" : "x"};
        EXPECT_EQ(allowed(who, what), role >= expected_role(*row, verb) && role != Role::none)
            << verb << " " << r.qualified() << " as " << to_string(role);
        ++checked;
      }
  }
  EXPECT_EQ(checked, static_cast<int>(resources().size() * kVerbs.size() * 5));
}

TEST(Authority, a_role_counts_in_its_own_workspace_only) {
  const Identity who = a_member_of("web", Role::owner);
  EXPECT_TRUE(allowed(who, {"create", "umpteenth.dev", "jobs", "", "web", ""}));
  EXPECT_FALSE(allowed(who, {"create", "umpteenth.dev", "jobs", "", "ops", ""}));
  EXPECT_FALSE(allowed(who, {"get", "umpteenth.dev", "workspaces", "", "", "ops"}));
  EXPECT_FALSE(may_see(who, "umpteenth.dev", "jobs", "ops", "a"));
}

TEST(Authority, the_system_workspace_is_the_instance_admins) {
  const Identity who = a_member_of(apis::kSystemWorkspace, Role::owner);
  for (const std::string& verb : kVerbs)
    EXPECT_FALSE(allowed(
        who, {verb, "umpteenth.dev", "modelproviders", "", apis::kSystemWorkspace, "main"}));
}

TEST(Authority, status_is_read_like_the_object_and_written_by_instance_admins) {
  const Identity who = a_member_of("web", Role::owner);
  EXPECT_TRUE(allowed(who, {"get", "umpteenth.dev", "jobs", "status", "web", "a"}));
  EXPECT_FALSE(allowed(who, {"patch", "umpteenth.dev", "jobs", "status", "web", "a"}));
  Identity admin;
  admin.instance_admin = true;
  EXPECT_TRUE(allowed(admin, {"patch", "umpteenth.dev", "jobs", "status", "web", "a"}));
}

TEST(Authority, members_run_jobs) {
  EXPECT_TRUE(allowed(a_member_of("web", Role::member),
                      {"create", "umpteenth.dev", "jobs", "run", "web", "a"}));
}

TEST(Authority, tokens_never_manage_workspaces) {
  Identity who = a_member_of("web", Role::owner);
  const Attributes what{"delete", "umpteenth.dev", "workspaces", "", "", "web"};
  EXPECT_TRUE(allowed(who, what));
  who.api_token = true;
  EXPECT_FALSE(allowed(who, what));
  EXPECT_FALSE(allowed(who, {"delete", "", "namespaces", "", "", "web"}));
  EXPECT_TRUE(allowed(who, {"get", "umpteenth.dev", "workspaces", "", "", "web"}));
}

TEST(Authority, what_has_no_row_is_the_instance_admins) {
  const Identity who = a_member_of("web", Role::owner);
  EXPECT_FALSE(allowed(who, {"get", "", "pods", "", "web", "a"}));
  EXPECT_FALSE(allowed(who, {"impersonate", "umpteenth.dev", "jobs", "", "web", "a"}));
}

TEST(Authority, refusal_is_in_kubernetes_words) {
  const Identity who = a_member_of("web", Role::member);
  EXPECT_EQ(refusal(who, {"delete", "umpteenth.dev", "jobs", "", "default", "a"}),
            "User \"u\" cannot delete resource \"jobs\" in API group \"umpteenth.dev\" in the "
            "namespace \"default\"");
  EXPECT_EQ(refusal(who, {"list", "umpteenth.dev", "sandboxengines", "", "", ""}),
            "User \"u\" cannot list resource \"sandboxengines\" in API group \"umpteenth.dev\" at "
            "the cluster scope");
}

TEST(Authority, rules_review_lists_what_the_role_may) {
  const json::Value rules = rules_review(a_member_of("web", Role::member), "web");
  bool jobs = false;
  for (const json::Value& rule : rules.get("resourceRules").items()) {
    if (!(rule.get("resources") == json::Value::array({"modelproviders"})) &&
        !(rule.get("resources") == json::Value::array({"jobs"})))
      continue;
    const bool is_jobs = rule.get("resources") == json::Value::array({"jobs"});
    jobs |= is_jobs;
    EXPECT_EQ(rule.get("verbs").size(), is_jobs ? 8U : 3U) << rule.dump();
  }
  EXPECT_TRUE(jobs);
}

TEST(Authority, unknown_role_names_the_four) {
  try {
    role_from("Boss");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "role: Unsupported value: \"Boss\": supported values: \"Member\", \"Admin\", "
              "\"Owner\", \"InstanceAdmin\"");
  }
}

}  // namespace
}  // namespace umpteenth::server
