// Server-side apply: ownership, conflicts, force, and the move from client-side apply.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

std::string applied(const std::string& spec, const std::string& metadata = "") {
  return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"a")" +
         metadata + R"(},"spec":)" + spec + "}";
}

class Apply : public ApiTest {
 protected:
  http::Response apply(const std::string& manager, const std::string& body,
                       const std::string& more = "") {
    return patch(kNs + "/jobs/a?fieldManager=" + manager + more, "apply-patch+yaml", body);
  }
  json::Value owner(const json::Value& job, const std::string& manager) {
    for (const json::Value& entry : job.at_path({"metadata", "managedFields"}).items())
      if (entry.get_string("manager") == manager) return entry;
    return {};
  }
};

TEST_F(Apply, creates_with_an_apply_entry_of_what_was_given) {
  const http::Response response = apply("kubectl", applied(R"({"instruction":"one"})"));
  ASSERT_EQ(response.status, 201) << response.body;
  const json::Value entry = owner(json::parse(response.body), "kubectl");
  EXPECT_EQ(entry.get_string("operation"), "Apply");
  EXPECT_EQ(entry.get("fieldsV1").dump(), R"({"f:spec":{"f:instruction":{}}})");
}

TEST_F(Apply, again_changes_nothing) {
  const http::Response first = apply("kubectl", applied(R"({"instruction":"one"})"));
  clock.advance(std::chrono::seconds(60));
  const http::Response second = apply("kubectl", applied(R"({"instruction":"one"})"));
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(json::parse(first.body), json::parse(second.body));
}

TEST_F(Apply, conflict_names_field_and_manager) {
  apply("kubectl", applied(R"({"instruction":"one"})"));
  const json::Value status = refused(
      apply("other", applied(R"({"instruction":"two"})")), 409,
      "Apply failed with 1 conflict: conflict with \"kubectl\" using umpteenth.dev/v1alpha1: "
      ".spec.instruction");
  EXPECT_EQ(
      status.get("details").get("causes").items()[0].dump(),
      R"({"reason":"FieldManagerConflict","message":"conflict with \"kubectl\" using umpteenth.dev/v1alpha1","field":".spec.instruction"})");
}

TEST_F(Apply, several_conflicts_are_listed) {
  apply("kubectl", applied(R"({"instruction":"one","suspend":true})"));
  refused(apply("other", applied(R"({"instruction":"two","suspend":false})")), 409,
          "Apply failed with 2 conflicts: conflicts with \"kubectl\" using "
          "umpteenth.dev/v1alpha1:\n- .spec.instruction\n- .spec.suspend");
}

TEST_F(Apply, force_takes_the_field_over) {
  apply("kubectl", applied(R"({"instruction":"one","suspend":true})"));
  const http::Response forced = apply("other", applied(R"({"instruction":"two"})"), "&force=true");
  ASSERT_EQ(forced.status, 200) << forced.body;
  const json::Value job = json::parse(forced.body);
  EXPECT_EQ(job.at_path({"spec", "instruction"}).as_string(), "two");
  EXPECT_EQ(owner(job, "kubectl").get("fieldsV1").dump(), R"({"f:spec":{"f:suspend":{}}})");
}

TEST_F(Apply, the_same_value_is_shared_and_kept_until_both_let_go) {
  apply("one", applied(R"({"instruction":"x","runAs":1})"));
  apply("one", applied(R"({"instruction":"x","model":{"name":"m"}})"));
  ASSERT_EQ(apply("two", applied(R"({"instruction":"x","model":{"name":"m"}})")).status, 200);
  json::Value job = json::parse(apply("one", applied(R"({"instruction":"x"})")).body);
  EXPECT_EQ(job.at_path({"spec", "model", "name"}).as_string(), "m") << "two still owns it";
  job = json::parse(apply("two", applied(R"({"instruction":"x"})")).body);
  EXPECT_NE(job.at_path({"spec", "model", "name"}), json::Value("m")) << job.dump();
}

TEST_F(Apply, fields_dropped_from_ones_own_set_are_removed) {
  apply("kubectl", applied(R"({"instruction":"x"})", R"(,"labels":{"a":"1","b":"2"})"));
  const json::Value job = json::parse(
      apply("kubectl", applied(R"({"instruction":"x"})", R"(,"labels":{"a":"1"})")).body);
  EXPECT_EQ(job.at_path({"metadata", "labels"}).dump(), R"({"a":"1"})");
}

TEST_F(Apply, rules_of_its_parameters) {
  refused(patch(kNs + "/jobs/a", "apply-patch+yaml", applied(R"({"instruction":"x"})")), 422,
          "fieldManager: Required value: is required for apply patch");
  make_job("b");
  EXPECT_EQ(patch(kNs + "/jobs/b?force=true", "merge-patch+json", "{}").status, 422);
  refused(
      apply("kubectl", applied(R"({"instruction":"x"})", R"(,"managedFields":[{"manager":"m"}])")),
      400, "metadata.managedFields must be nil");
}

TEST_F(Apply, dry_run_stores_nothing) {
  EXPECT_EQ(apply("kubectl", applied(R"({"instruction":"x"})"), "&dryRun=All").status, 201);
  EXPECT_FALSE(exists("jobs", "a"));
}

TEST_F(Apply, yaml_is_read) {
  const http::Response response = apply("kubectl",
                                        "apiVersion: umpteenth.dev/v1alpha1\nkind: "
                                        "Job\nmetadata:\n  name: a\nspec:\n  instruction: y\n");
  EXPECT_EQ(response.status, 201) << response.body;
}

TEST_F(Apply, unknown_fields_are_refused_when_strict) {
  EXPECT_EQ(
      apply("kubectl", applied(R"({"instruction":"x","foo":1})"), "&fieldValidation=Strict").status,
      400);
  EXPECT_FALSE(exists("jobs", "a"));
}

TEST_F(Apply, kubectl_takes_over_from_its_client_side_applies) {
  const std::string body = applied(R"({"instruction":"one"})");
  json::Value object = json::parse(body);
  object["metadata"]["annotations"].set(apis::kLastApplied, body);
  ASSERT_EQ(
      send("POST", kNs + "/jobs?fieldManager=kubectl-client-side-apply", object.dump()).status,
      201);
  EXPECT_EQ(apply("stranger", applied(R"({"instruction":"two"})")).status, 409);
  const http::Response response = apply("kubectl", applied(R"({"instruction":"two"})"));
  ASSERT_EQ(response.status, 200) << response.body;
  const std::string annotation =
      apis::annotation_of(json::parse(response.body), apis::kLastApplied);
  EXPECT_NE(annotation.find("\"two\""), std::string::npos) << annotation;
}

TEST_F(Apply, managed_fields_can_be_replaced_and_cleared) {
  apply("kubectl", applied(R"({"instruction":"one"})"));
  const http::Response response =
      patch(kNs + "/jobs/a", "json-patch+json",
            R"([{"op":"replace","path":"/metadata/managedFields","value":[{}]}])");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_TRUE(json::parse(response.body).at_path({"metadata", "managedFields"}).empty())
      << response.body;
  EXPECT_EQ(apply("other", applied(R"({"instruction":"two"})")).status, 200);
}

}  // namespace
}  // namespace umpteenth::server
