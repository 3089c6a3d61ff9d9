// get, list, create, replace, patch and status, as clients see them.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

class Crud : public ApiTest {};

TEST_F(Crud, create_answers_201_with_the_whole_object) {
  const json::Value job = make_job("a");
  EXPECT_EQ(job.get_string("kind"), "Job");
  EXPECT_EQ(apis::namespace_of(job), "default");
  EXPECT_EQ(apis::uid_of(job).size(), 36U);
  EXPECT_EQ(apis::generation_of(job), 1);
  EXPECT_GT(apis::revision_of(job), 0U);
  EXPECT_EQ(job.get("metadata").get_string("creationTimestamp"), "2026-11-30T08:00:00Z");
  EXPECT_EQ(job.at_path({"spec", "limits", "maxTurns"}).as_int(), 60) << "defaults are visible";
  EXPECT_EQ(ok("GET", kNs + "/jobs/a"), job);
}

TEST_F(Crud, missing_object_is_not_found_with_details) {
  const json::Value status =
      refused(send("GET", kNs + "/jobs/nope"), 404, "jobs.umpteenth.dev \"nope\" not found");
  EXPECT_EQ(status.get_string("reason"), "NotFound");
  EXPECT_EQ(status.get("details").dump(),
            R"({"name":"nope","group":"umpteenth.dev","kind":"jobs"})");
}

TEST_F(Crud, second_create_already_exists) {
  make_job("a");
  const json::Value status = refused(send("POST", kNs + "/jobs", a_job("a")), 409,
                                     "jobs.umpteenth.dev \"a\" already exists");
  EXPECT_EQ(status.get_string("reason"), "AlreadyExists");
  refused(send("POST", kNs + "/jobs?dryRun=All", a_job("a")), 409,
          "jobs.umpteenth.dev \"a\" already exists");
}

TEST_F(Crud, unknown_workspace_is_named) {
  refused(send("POST", kGv + "/namespaces/nowhere/jobs", a_job("a")), 404,
          "namespaces \"nowhere\" not found");
  EXPECT_TRUE(ok("GET", kGv + "/namespaces/nowhere/jobs").get("items").empty());
}

TEST_F(Crud, generate_name_makes_distinct_names) {
  const std::string body =
      R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"generateName":"g-"},"spec":{"instruction":"x"}})";
  const std::string one = apis::name_of(ok("POST", kNs + "/jobs", body, 201));
  const std::string two = apis::name_of(ok("POST", kNs + "/jobs", body, 201));
  EXPECT_TRUE(one.starts_with("g-") && two.starts_with("g-"));
  EXPECT_NE(one, two);
}

TEST_F(Crud, dry_run_create_stores_nothing) {
  const uint64_t before = store->revision();
  const json::Value job = ok("POST", kNs + "/jobs?dryRun=All", a_job("a"), 201);
  EXPECT_EQ(apis::name_of(job), "a");
  EXPECT_FALSE(exists("jobs", "a"));
  EXPECT_EQ(store->revision(), before);
  const json::Value status = json::parse(send("POST", kNs + "/jobs?dryRun=Some", a_job("a")).body);
  EXPECT_EQ(status.get_string("message"),
            "dryRun: Unsupported value: \"Some\": supported values: \"All\"");
}

TEST_F(Crud, body_that_contradicts_the_path_is_a_bad_request) {
  std::string elsewhere = a_job("a");
  elsewhere.insert(elsewhere.find("\"labels\""), "\"namespace\":\"other\",");
  refused(send("POST", kNs + "/jobs", elsewhere), 400,
          "the namespace of the provided object does not match the namespace sent on the request");
  make_job("a");
  refused(send("PUT", kNs + "/jobs/a", a_job("b")), 400,
          "the name of the object (b) does not match the name on the URL (a)");
  refused(send("POST", kNs + "/jobs", R"({"metadata":{"name":"a"}})"), 400,
          "Object 'Kind' is missing in the body");
  refused(send("POST", kNs + "/jobs", workspace("a")), 400,
          "Workspace in version \"v1alpha1\" cannot be handled as a Job");
  refused(send("POST", kNs + "/jobs",
               R"({"apiVersion":"umpteenth.dev/v9","kind":"Job","metadata":{"name":"a"}})"),
          400,
          "the API version in the data (umpteenth.dev/v9) does not match the expected API version "
          "(umpteenth.dev/v1alpha1)");
}

TEST_F(Crud, resource_version_on_create_is_refused) {
  std::string body = a_job("a");
  body.insert(body.find("\"labels\""), "\"resourceVersion\":\"7\",");
  refused(send("POST", kNs + "/jobs", body), 400,
          "resourceVersion should not be set on objects to be created");
}

TEST_F(Crud, malformed_bodies_are_bad_requests) {
  for (const std::string& body :
       {std::string("{nope"), std::string(), std::string("[1,2]"), std::string("\"text\""),
        std::string("{\"a\":\"\xff\"}"), std::string(R"({"kind":"Job","kind":"Job"})"),
        std::string(100, '['),
        std::string(R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":5})")})
    EXPECT_EQ(send("POST", kNs + "/jobs", body).status, 400) << body;
}

TEST_F(Crud, yaml_bodies_are_read_and_aliases_refused) {
  const std::string head = "apiVersion: umpteenth.dev/v1alpha1\nkind: Job\n";
  const http::Headers yaml = {{"Content-Type", "application/yaml"}};
  EXPECT_EQ(send("POST", kNs + "/jobs",
                 head + "metadata: {name: y}\nspec: {instruction: \"010\"}\n", yaml)
                .status,
            201);
  EXPECT_EQ(ok("GET", kNs + "/jobs/y").at_path({"spec", "instruction"}).as_string(), "010");
  EXPECT_EQ(
      send("POST", kNs + "/jobs", head + "metadata: {name: &n z}\nspec: {instruction: *n}\n", yaml)
          .status,
      400);
}

TEST_F(Crud, other_content_types_are_unsupported) {
  refused(send("POST", kNs + "/jobs", "<job/>", {{"Content-Type", "text/xml"}}), 415,
          "the body of the request was in an unknown format - accepted media types include: "
          "application/json, application/yaml");
}

TEST_F(Crud, unknown_fields_by_field_validation) {
  std::string body = a_job("a");
  body.insert(body.find("\"instruction\""), "\"foo\":1,");
  refused(send("POST", kNs + "/jobs?fieldValidation=Strict", body), 400,
          "Job in version \"v1alpha1\" cannot be handled as a Job: strict decoding error: unknown "
          "field \"spec.foo\"");
  const http::Response warned = send("POST", kNs + "/jobs", body);
  EXPECT_EQ(warned.status, 201);
  EXPECT_EQ(warned.headers.get("Warning"), "299 - \"unknown field \\\"spec.foo\\\"\"");
  EXPECT_TRUE(json::parse(warned.body).at_path({"spec", "foo"}).is_null());
  std::string other = body;
  other.replace(other.find("\"a\""), 3, "\"b\"");
  const http::Response ignored = send("POST", kNs + "/jobs?fieldValidation=Ignore", other);
  EXPECT_EQ(ignored.status, 201);
  EXPECT_FALSE(ignored.headers.has("Warning"));
  EXPECT_EQ(send("POST", kNs + "/jobs?fieldValidation=Never", body).status, 422);
}

TEST_F(Crud, invalid_spec_names_each_field) {
  const json::Value status = json::parse(
      send(
          "POST", kNs + "/jobs",
          R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"a"},"spec":{"instruction":"x","limits":{"maxTurns":5000,"timeoutSeconds":1}}})")
          .body);
  EXPECT_EQ(status.get_string("reason"), "Invalid");
  EXPECT_EQ(status.get("details").get_string("kind"), "Job");
  EXPECT_EQ(status.get("details").get("causes").size(), 2U) << status.dump();
  EXPECT_TRUE(status.get_string("message").starts_with("Job.umpteenth.dev \"a\" is invalid: ["))
      << status.dump();
}

TEST_F(Crud, replace_needs_the_revision_it_read) {
  const json::Value job = make_job("a");
  json::Value changed = job;
  changed["spec"].set("instruction", "other");
  changed["metadata"].erase("resourceVersion");
  refused(send("PUT", kNs + "/jobs/a", changed.dump()), 422,
          "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
  changed["metadata"].set("resourceVersion", job.at_path({"metadata", "resourceVersion"}));
  const json::Value replaced = ok("PUT", kNs + "/jobs/a", changed.dump());
  EXPECT_EQ(apis::generation_of(replaced), 2);
  const json::Value status = refused(
      send("PUT", kNs + "/jobs/a", changed.dump()), 409,
      "Operation cannot be fulfilled on jobs.umpteenth.dev \"a\": the object has been modified; "
      "please apply your changes to the latest version and try again");
  EXPECT_EQ(status.get_string("reason"), "Conflict");
  refused(send("PUT", kNs + "/jobs/nope", a_job("nope")), 404,
          "jobs.umpteenth.dev \"nope\" not found");
}

TEST_F(Crud, put_keeps_status_and_ignores_what_it_brings) {
  make_job("a");
  patch(kNs + "/jobs/a/status", "merge-patch+json",
        R"({"status":{"nextRunTime":"2026-12-01T08:00:00Z"}})");
  json::Value job = ok("GET", kNs + "/jobs/a");
  ASSERT_EQ(job.get("status").get_string("nextRunTime"), "2026-12-01T08:00:00Z") << job.dump();
  EXPECT_EQ(apis::generation_of(job), 1);
  job["status"].set("nextRunTime", "2030-01-01T00:00:00Z");
  const json::Value same = ok("PUT", kNs + "/jobs/a", job.dump());
  EXPECT_EQ(same.get("status").get_string("nextRunTime"), "2026-12-01T08:00:00Z");
  EXPECT_EQ(apis::revision_of(same), apis::revision_of(job)) << "no effect, no revision";
}

TEST_F(Crud, status_ignores_all_but_status) {
  const json::Value before = make_job("a");
  const http::Response response =
      patch(kNs + "/jobs/a/status", "merge-patch+json",
            R"({"spec":{"instruction":"other"},"status":{"nextRunTime":"2026-12-01T08:00:00Z"}})");
  ASSERT_EQ(response.status, 200) << response.body;
  const json::Value job = json::parse(response.body);
  EXPECT_EQ(job.at_path({"spec", "instruction"}).as_string(), "say hello");
  EXPECT_EQ(apis::generation_of(job), 1);
  EXPECT_GT(apis::revision_of(job), apis::revision_of(before));
}

TEST_F(Crud, merge_patch_changes_and_keeps_the_revision_without_effect) {
  const json::Value job = make_job("a");
  const json::Value patched = json::parse(
      patch(kNs + "/jobs/a", "merge-patch+json", R"({"spec":{"instruction":"p1"}})").body);
  EXPECT_EQ(patched.at_path({"spec", "instruction"}).as_string(), "p1");
  EXPECT_EQ(apis::generation_of(patched), 2);
  const json::Value again = json::parse(
      patch(kNs + "/jobs/a", "merge-patch+json", R"({"spec":{"instruction":"p1"}})").body);
  EXPECT_EQ(apis::revision_of(again), apis::revision_of(patched));
  EXPECT_EQ(again, patched);
  const std::string stale = R"({"metadata":{"resourceVersion":")" +
                            std::to_string(apis::revision_of(job)) +
                            R"("},"spec":{"instruction":"p2"}})";
  EXPECT_EQ(patch(kNs + "/jobs/a", "merge-patch+json", stale).status, 409);
}

TEST_F(Crud, dry_run_patch_stores_nothing) {
  make_job("a");
  const uint64_t before = store->revision();
  const http::Response response =
      patch(kNs + "/jobs/a?dryRun=All", "merge-patch+json", R"({"spec":{"instruction":"p1"}})");
  const json::Value answer = json::parse(response.body);
  EXPECT_EQ(answer.at_path({"spec", "instruction"}).as_string(), "p1");
  EXPECT_EQ(answer.at_path({"metadata", "resourceVersion"}),
            ok("GET", kNs + "/jobs/a").at_path({"metadata", "resourceVersion"}));
  EXPECT_EQ(store->revision(), before);
}

TEST_F(Crud, json_patch_tests_and_replaces) {
  make_job("a");
  const http::Response response = patch(
      kNs + "/jobs/a", "json-patch+json",
      R"([{"op":"test","path":"/spec/instruction","value":"say hello"},{"op":"replace","path":"/spec/instruction","value":"p2"}])");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(ok("GET", kNs + "/jobs/a").at_path({"spec", "instruction"}).as_string(), "p2");
  EXPECT_EQ(patch(kNs + "/jobs/a", "json-patch+json",
                  R"([{"op":"test","path":"/spec/instruction","value":"no"}])")
                .status,
            422);
}

TEST_F(Crud, strategic_patches_are_unsupported_in_the_standard_words) {
  make_job("a");
  refused(patch(kNs + "/jobs/a", "strategic-merge-patch+json", "{}"), 415,
          "the body of the request was in an unknown format - accepted media types include: "
          "application/json-patch+json, application/merge-patch+json, "
          "application/apply-patch+yaml");
}

TEST_F(Crud, a_merge_patch_that_is_a_list_is_a_bad_request) {
  make_job("a");
  refused(patch(kNs + "/jobs/a", "merge-patch+json", "[]"), 400,
          "a merge patch must be an object, found array");
}

TEST_F(Crud, name_and_uid_cannot_be_patched) {
  make_job("a");
  const json::Value renamed =
      json::parse(patch(kNs + "/jobs/a", "merge-patch+json", R"({"metadata":{"name":"b"}})").body);
  EXPECT_EQ(renamed.get_int("code"), 422);
  EXPECT_NE(renamed.get_string("message").find("field is immutable"), std::string::npos);
  EXPECT_EQ(patch(kNs + "/jobs/a", "merge-patch+json", R"({"metadata":{"uid":"other"}})").status,
            409);
}

TEST_F(Crud, patch_of_a_missing_object_is_not_found) {
  refused(patch(kNs + "/jobs/nope", "merge-patch+json", "{}"), 404,
          "jobs.umpteenth.dev \"nope\" not found");
}

TEST_F(Crud, methods_and_routes_that_are_not_there) {
  const std::string no_method = "the server does not allow this method on the requested resource";
  const std::string no_route = "the server could not find the requested resource";
  refused(send("PUT", kNs + "/jobs", "{}"), 405, no_method);
  refused(send("POST", kGv + "/jobs", a_job("a")), 405, no_method);
  refused(send("DELETE", kGv + "/jobs"), 405, no_method);
  refused(send("GET", "/apis/no.such.group/v1"), 404, no_route);
  refused(send("GET", kNs + "/pods"), 404, no_route);
  refused(send("GET", kNs + "/jobs/a/scale"), 404, no_route);
  refused(send("GET", kGv + "/namespaces/default/workspaces/x"), 404, no_route);
  refused(send("DELETE", kNs + "/jobs/a/run"), 405, no_method);
  refused(send("GET", "/nothing"), 404, no_route);
}

TEST_F(Crud, many_writers_of_one_object_lose_nothing) {
  make_job("a");
  std::vector<std::jthread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 5; ++i)
        while (patch(kNs + "/jobs/a", "merge-patch+json",
                     R"({"metadata":{"labels":{"w)" + std::to_string(w) + "-" + std::to_string(i) +
                         R"(":"1"}}})")
                   .status == 409) {
        }
    });
  writers.clear();
  EXPECT_EQ(ok("GET", kNs + "/jobs/a").at_path({"metadata", "labels"}).size(), 20U);
}

TEST_F(Crud, managed_fields_name_the_writer) {
  send("POST", kNs + "/jobs?fieldManager=kubectl-create", a_job("a"));
  const json::Value list = ok("GET", kNs + "/jobs/a").at_path({"metadata", "managedFields"});
  ASSERT_EQ(list.size(), 1U) << list.dump();
  EXPECT_EQ(list.items()[0].get_string("manager"), "kubectl-create");
  EXPECT_EQ(list.items()[0].get_string("operation"), "Update");
  http::Headers agent = {{"User-Agent", "curl/7.88"},
                         {"Content-Type", "application/merge-patch+json"}};
  send("PATCH", kNs + "/jobs/a", R"({"metadata":{"labels":{"x":"1"}}})", agent);
  EXPECT_NE(ok("GET", kNs + "/jobs/a").dump().find("\"manager\":\"curl\""), std::string::npos);
}

TEST_F(Crud, who_rules_the_instance_takes_the_firewalls_rules_out_and_nobody_else) {
  const std::string engine = kGv + "/sandboxengines/default";
  EXPECT_EQ(send("DELETE", engine + "/firewall").status, 404);
  ok("POST", kGv + "/sandboxengines",
     R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"SandboxEngine","metadata":{"name":"default"},"spec":{}})",
     201);
  EXPECT_EQ(ok("DELETE", engine + "/firewall").get("removed").size(), 1U);
  EXPECT_EQ(cleared, std::vector<std::string>{"default"});
  EXPECT_TRUE(store->find({"sandboxengines", "", "default"})) << "the engine itself stays";
  token = token_for(Role::owner, {"default"});
  EXPECT_EQ(send("DELETE", engine + "/firewall").status, 403);
  EXPECT_EQ(cleared.size(), 1U);
}

}  // namespace
}  // namespace umpteenth::server
