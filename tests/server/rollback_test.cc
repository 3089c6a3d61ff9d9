// Rolling back: an object is declared again as it was, also one that was deleted.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

class Rollback : public ApiTest {
 protected:
  Rollback() {
    first = std::to_string(apis::revision_of(make_job("a", "one", R"({"team":"web"})")));
    patch(kNs + "/jobs/a", "merge-patch+json",
          R"({"metadata":{"labels":{"team":null}},"spec":{"instruction":"two"}})");
  }
  http::Response roll_back(const std::string& to, const std::string& more = "") {
    return send("POST", kNs + "/jobs/a/rollback?to=" + to + more);
  }
  std::string instruction() {
    return ok("GET", kNs + "/jobs/a").get("spec").get_string("instruction");
  }
  std::string last_message() {
    return ok("GET", kNs + "/jobs/a/history").get("items").items()[0].get_string("message");
  }
  std::string first;
};

TEST_F(Rollback, is_a_new_change_that_history_names) {
  const json::Value before = ok("GET", kNs + "/jobs/a");
  const http::Response response = roll_back(first);
  ASSERT_EQ(response.status, 200) << response.body;
  const json::Value job = json::parse(response.body);
  EXPECT_EQ(instruction(), "one");
  EXPECT_EQ(apis::label_of(job, "team"), "web");
  EXPECT_EQ(apis::uid_of(job), apis::uid_of(before));
  EXPECT_EQ(apis::generation_of(job), apis::generation_of(before) + 1);
  EXPECT_EQ(last_message(), "roll back jobs/default/a to " + first);
  EXPECT_EQ(ok("GET", kNs + "/jobs/a/history").get("items").size(), 3U);
  EXPECT_EQ(roll_back(first).status, 200);
  EXPECT_EQ(ok("GET", kNs + "/jobs/a/history").get("items").size(), 3U) << "it is so already";
}

TEST_F(Rollback, a_commit_names_a_revision_too_and_a_dry_run_changes_nothing) {
  const std::string commit =
      ok("GET", kNs + "/jobs/a/history").get("items").items()[1].get_string("commit");
  EXPECT_EQ(roll_back(commit.substr(0, 12), "&dryRun=All").status, 200);
  EXPECT_EQ(instruction(), "two");
  EXPECT_EQ(roll_back(commit.substr(0, 12)).status, 200);
  EXPECT_EQ(instruction(), "one");
}

TEST_F(Rollback, what_was_deleted_is_created_again) {
  const std::string uid = apis::uid_of(ok("GET", kNs + "/jobs/a"));
  ok("DELETE", kNs + "/jobs/a");
  const http::Response response = roll_back(first);
  ASSERT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(instruction(), "one");
  const json::Value job = ok("GET", kNs + "/jobs/a");
  EXPECT_NE(apis::uid_of(job), uid) << "another object of that name";
  EXPECT_EQ(apis::generation_of(job), 1);
  EXPECT_EQ(apis::label_of(job, "team"), "web");
  EXPECT_EQ(last_message(), "roll back jobs/default/a to " + first);
}

TEST_F(Rollback, a_secret_goes_back_to_its_sealed_values) {
  const std::string secret = kNs + "/secrets/s";
  const auto body = [](const std::string& value) {
    return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Secret","metadata":{"name":"s"},"spec":{"stringData":{"value":")" +
           value + R"("}}})";
  };
  const json::Value made = ok("POST", kNs + "/secrets", body("first-value"), 201);
  patch(secret, "merge-patch+json", R"({"spec":{"stringData":{"value":"second-value"}}})");
  ok("POST", secret + "/rollback?to=" + std::to_string(apis::revision_of(made)));
  EXPECT_EQ(apis::secret_value(sealer, ok("GET", secret), "value"), "first-value");
  ok("DELETE", secret);
  ok("POST", secret + "/rollback?to=" + std::to_string(apis::revision_of(made)), "", 201);
  EXPECT_EQ(apis::secret_value(sealer, ok("GET", secret), "value"), "first-value");
}

TEST_F(Rollback, what_cannot_be_rolled_back_is_said) {
  refused(roll_back("999"), 404, "jobs/default/a has no revision \"999\" in its history");
  EXPECT_EQ(send("POST", kNs + "/jobs/a/rollback").status, 422);
  EXPECT_EQ(send("POST", kNs + "/jobs/nope/rollback?to=" + first).status, 404);
  EXPECT_EQ(send("GET", kNs + "/jobs/a/rollback?to=" + first).status, 405);
  EXPECT_EQ(send("POST", kNs + "/runs/r/rollback?to=" + first).status, 400);
  patch(kNs + "/jobs/a", "merge-patch+json", R"({"metadata":{"finalizers":["example.com/hold"]}})");
  ok("DELETE", kNs + "/jobs/a");
  refused(roll_back(first), 409,
          "Operation cannot be fulfilled on jobs.umpteenth.dev \"a\": it is being deleted; roll it "
          "back once it is gone");
}

TEST_F(Rollback, needs_what_an_update_or_a_create_needs) {
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  token = token_for(Role::owner, {"web"});
  EXPECT_EQ(roll_back(first).status, 403);
  token = token_for(Role::member, {"default"});
  EXPECT_EQ(roll_back(first).status, 200);
  EXPECT_EQ(instruction(), "one");
}

}  // namespace
}  // namespace umpteenth::server
