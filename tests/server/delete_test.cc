// delete and deletecollection: preconditions, finalizers, propagation, workspaces.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

class Delete : public ApiTest {
 protected:
  void finalizers(const std::string& job, const std::string& list) {
    const http::Response response = patch(kNs + "/jobs/" + job, "merge-patch+json",
                                          R"({"metadata":{"finalizers":)" + list + "}}");
    ASSERT_EQ(response.status, 200) << response.body;
  }
  void own(const std::string& job, const std::string& owner) {
    const std::string uid = apis::uid_of(ok("GET", kNs + "/jobs/" + owner));
    const http::Response response = patch(
        kNs + "/jobs/" + job, "merge-patch+json",
        R"({"metadata":{"ownerReferences":[{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","name":")" +
            owner + R"(","uid":")" + uid + R"("}]}})");
    ASSERT_EQ(response.status, 200) << response.body;
  }
};

TEST_F(Delete, answers_a_success_status_with_the_uid) {
  const std::string uid = apis::uid_of(make_job("a"));
  const json::Value status = ok("DELETE", kNs + "/jobs/a");
  EXPECT_EQ(
      status.dump(),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"umpteenth.dev","kind":"jobs","uid":")" +
          uid + R"("}})");
  EXPECT_FALSE(exists("jobs", "a"));
  refused(send("DELETE", kNs + "/jobs/a"), 404, "jobs.umpteenth.dev \"a\" not found");
}

TEST_F(Delete, preconditions_are_kept) {
  const json::Value job = make_job("a");
  refused(send("DELETE", kNs + "/jobs/a",
               R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"0-0"}})"),
          409,
          "Operation cannot be fulfilled on jobs.umpteenth.dev \"a\": Precondition failed: UID in "
          "precondition: 0-0, UID in object meta: " +
              apis::uid_of(job));
  EXPECT_EQ(send("DELETE", kNs + "/jobs/a", R"({"preconditions":{"resourceVersion":"1"}})").status,
            409);
  EXPECT_TRUE(exists("jobs", "a"));
  EXPECT_EQ(
      send("DELETE", kNs + "/jobs/a", R"({"preconditions":{"uid":")" + apis::uid_of(job) + R"("}})")
          .status,
      200);
}

TEST_F(Delete, dry_run_in_body_or_query_deletes_nothing) {
  make_job("a");
  EXPECT_EQ(send("DELETE", kNs + "/jobs/a", R"({"dryRun":["All"]})").status, 200);
  EXPECT_EQ(send("DELETE", kNs + "/jobs/a?dryRun=All").status, 200);
  EXPECT_TRUE(exists("jobs", "a"));
}

TEST_F(Delete, finalizers_hold_the_object_until_the_last_is_removed) {
  make_job("a");
  finalizers("a", R"(["example.com/hold"])");
  const json::Value held = ok("DELETE", kNs + "/jobs/a");
  EXPECT_EQ(held.get_string("kind"), "Job");
  EXPECT_EQ(held.get("metadata").get_string("deletionTimestamp"), "2026-11-30T08:00:00Z");
  EXPECT_EQ(held.get("metadata").get_int("deletionGracePeriodSeconds", -1), 0);
  const json::Value again = ok("DELETE", kNs + "/jobs/a");
  EXPECT_EQ(apis::revision_of(again), apis::revision_of(held)) << "asked twice, changed once";
  EXPECT_EQ(patch(kNs + "/jobs/a", "merge-patch+json",
                  R"({"metadata":{"finalizers":["example.com/hold","example.com/more"]}})")
                .status,
            422);
  finalizers("a", "null");
  EXPECT_FALSE(exists("jobs", "a"));
}

TEST_F(Delete, background_removes_dependents_and_theirs) {
  for (const char* name : {"owner", "child", "grandchild", "stranger"}) make_job(name);
  own("child", "owner");
  own("grandchild", "child");
  send("DELETE", kNs + "/jobs/owner", R"({"propagationPolicy":"Background"})");
  EXPECT_TRUE(
      eventually([&] { return !exists("jobs", "child") && !exists("jobs", "grandchild"); }));
  EXPECT_TRUE(exists("jobs", "stranger"));
}

TEST_F(Delete, foreground_removes_dependents_before_it_answers) {
  make_job("owner");
  make_job("child");
  own("child", "owner");
  send("DELETE", kNs + "/jobs/owner?propagationPolicy=Foreground");
  EXPECT_FALSE(exists("jobs", "child"));
}

TEST_F(Delete, orphan_leaves_dependents_without_an_owner) {
  make_job("owner");
  make_job("child");
  own("child", "owner");
  send("DELETE", kNs + "/jobs/owner", R"({"propagationPolicy":"Orphan"})");
  EXPECT_FALSE(exists("jobs", "owner"));
  const json::Value child = ok("GET", kNs + "/jobs/child");
  EXPECT_TRUE(child.at_path({"metadata", "ownerReferences"}).empty());
}

TEST_F(Delete, a_second_living_owner_keeps_the_dependent) {
  for (const char* name : {"one", "two", "child", "witness"}) make_job(name);
  const std::string one = apis::uid_of(ok("GET", kNs + "/jobs/one"));
  const std::string two = apis::uid_of(ok("GET", kNs + "/jobs/two"));
  const auto ref = [](const std::string& name, const std::string& uid) {
    return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","name":")" + name +
           R"(","uid":")" + uid + "\"}";
  };
  patch(kNs + "/jobs/child", "merge-patch+json",
        R"({"metadata":{"ownerReferences":[)" + ref("one", one) + "," + ref("two", two) + "]}}");
  own("witness", "one");
  send("DELETE", kNs + "/jobs/one");
  ASSERT_TRUE(eventually([&] { return !exists("jobs", "witness"); })) << "the round has passed";
  EXPECT_TRUE(exists("jobs", "child"));
  send("DELETE", kNs + "/jobs/two");
  EXPECT_TRUE(eventually([&] { return !exists("jobs", "child"); }));
}

TEST_F(Delete, unknown_propagation_is_invalid) {
  make_job("a");
  refused(send("DELETE", kNs + "/jobs/a", R"({"propagationPolicy":"Later"})"), 422,
          "propagationPolicy: Unsupported value: \"Later\": supported values: \"Background\", "
          "\"Foreground\", \"Orphan\"");
}

TEST_F(Delete, collection_takes_what_is_selected_and_lists_it) {
  make_job("a", "x", R"({"app":"demo"})");
  make_job("b", "x", R"({"app":"demo"})");
  make_job("c");
  const json::Value list = ok("DELETE", kNs + "/jobs?labelSelector=app%3Ddemo");
  EXPECT_EQ(list.get_string("kind"), "JobList");
  EXPECT_EQ(names(list), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(exists("jobs", "a"));
  EXPECT_TRUE(exists("jobs", "c"));
}

TEST_F(Delete, workspace_with_content_lists_it_and_needs_a_cascade) {
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  ok("POST", kGv + "/namespaces/web/jobs", a_job("a"), 201);
  ok("POST", kGv + "/namespaces/web/jobs", a_job("b"), 201);
  const json::Value status = json::parse(
      send("DELETE", "/api/v1/namespaces/web", R"({"propagationPolicy":"Background"})").body);
  EXPECT_EQ(status.get_int("code"), 409);
  EXPECT_NE(status.get_string("message").find("it still holds 2 jobs (a, b)"), std::string::npos)
      << status.dump();
  EXPECT_NE(status.get_string("message").find("--cascade=foreground"), std::string::npos);
  EXPECT_TRUE(exists("workspaces", "web", ""));
  const json::Value leaving =
      ok("DELETE", "/api/v1/namespaces/web", R"({"propagationPolicy":"Foreground"})");
  EXPECT_EQ(leaving.get_string("kind"), "Namespace");
  EXPECT_EQ(leaving.get("status").get_string("phase"), "Terminating");
  EXPECT_TRUE(eventually([&] { return !exists("workspaces", "web", ""); }));
  EXPECT_FALSE(exists("jobs", "a", "web"));
}

TEST_F(Delete, empty_workspace_goes) {
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  ok("DELETE", kGv + "/workspaces/web");
  EXPECT_TRUE(eventually([&] { return !exists("workspaces", "web", ""); }));
}

TEST_F(Delete, workspace_waits_for_finalizers_and_takes_nothing_new) {
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  const std::string jobs = kGv + "/namespaces/web/jobs";
  ok("POST", jobs, a_job("a"), 201);
  patch(jobs + "/a", "merge-patch+json", R"({"metadata":{"finalizers":["example.com/hold"]}})");
  ok("DELETE", kGv + "/workspaces/web?propagationPolicy=Foreground");
  EXPECT_TRUE(eventually([&] { return apis::deleting(ok("GET", jobs + "/a")); }));
  refused(send("POST", jobs, a_job("b")), 403,
          "jobs.umpteenth.dev is forbidden: unable to create new content in namespace web because "
          "it is being terminated");
  patch(jobs + "/a", "merge-patch+json", R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(eventually([&] { return !exists("workspaces", "web", ""); }));
}

TEST_F(Delete, default_workspace_stays) {
  refused(send("DELETE", "/api/v1/namespaces/default"), 403,
          "namespaces \"default\" is forbidden: this workspace may not be deleted");
}

}  // namespace
}  // namespace umpteenth::server
