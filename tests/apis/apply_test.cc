#include "apis/apply.h"

#include "apis/managed_fields.h"
#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

json::Value body(const std::string& spec_yaml, const std::string& labels = "{}") {
  json::Value job = a_job(spec_yaml);
  if (labels != "{}") job["metadata"].set("labels", parse_yaml_one(labels));
  return job;
}

json::Value applied_by(const char* manager, const json::Value* live, const json::Value& given,
                       bool force = false) {
  const Applied made = apply(job_kind(), live, given, {manager, force, kNow});
  EXPECT_EQ(made.created, live == nullptr);
  WriteOptions o = options();
  o.field_manager = manager;
  o.managed_fields_made = true;
  return live ? prepare_update(job_kind(), *live, made.object, o).object
              : prepare_create(job_kind(), made.object, o).object;
}

json::Value updated_by(const char* manager, const json::Value& live, const char* field,
                       json::Value value) {
  json::Value given = live;
  given["spec"].set(field, std::move(value));
  WriteOptions o = options();
  o.field_manager = manager;
  return prepare_update(job_kind(), live, given, o).object;
}

std::string owners_of(const json::Value& object, const std::string& path) {
  std::string all;
  for (const json::Value& e : object.get("metadata").get("managedFields").items())
    for (const std::string& p : field_paths(e.get("fieldsV1")))
      if (p == path) all += (all.empty() ? "" : ",") + e.get_string("manager");
  return all;
}

TEST(Apply, creates_with_an_entry_of_what_was_applied) {
  const json::Value made = applied_by("kubectl", nullptr, body("instruction: x", "{a.b/c: d}"));
  const json::Value& entry = made.get("metadata").get("managedFields").items()[0];
  EXPECT_EQ(made.get("metadata").get("managedFields").size(), 1u);
  EXPECT_EQ(entry.get_string("operation"), "Apply");
  EXPECT_EQ(entry.get("fieldsV1").dump(),
            R"({"f:metadata":{"f:labels":{"f:a.b/c":{}}},"f:spec":{"f:instruction":{}}})");
}

TEST(Apply, the_same_again_is_no_change) {
  const json::Value live = applied_by("kubectl", nullptr, body("instruction: x"));
  EXPECT_EQ(applied_by("kubectl", &live, body("instruction: x")), live);
}

TEST(Apply, a_foreign_field_with_another_value_is_a_conflict) {
  const json::Value live =
      applied_by("a", nullptr, body("{instruction: x, limits: {maxTurns: 5}}"));
  EXPECT_EQ(complaints([&] { applied_by("b", &live, body("instruction: y")); }),
            std::vector<std::string>{
                ".spec.instruction: conflict with \"a\" using umpteenth.dev/v1alpha1"});
  try {
    applied_by("b", &live, body("instruction: y"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::conflict);
    EXPECT_EQ(e.message(),
              "Apply failed with 1 conflict: conflict with \"a\" using umpteenth.dev/v1alpha1: "
              ".spec.instruction");
    EXPECT_EQ(e.causes()[0].reason, "FieldManagerConflict");
  }
  try {
    applied_by("b", &live, body("{instruction: y, limits: {maxTurns: 6}}"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "Apply failed with 2 conflicts: conflicts with \"a\" using umpteenth.dev/v1alpha1:\n"
              "- .spec.instruction\n- .spec.limits.maxTurns");
  }
  const json::Value forced = applied_by("b", &live, body("instruction: y"), true);
  EXPECT_EQ(forced.at_path({"spec", "instruction"}), json::Value("y"));
  EXPECT_EQ(owners_of(forced, ".spec.instruction"), "b");
  EXPECT_EQ(owners_of(forced, ".spec.limits.maxTurns"), "a");
}

TEST(Apply, an_equal_value_is_shared) {
  const json::Value live = applied_by("a", nullptr, body("instruction: x"));
  const json::Value made = applied_by("b", &live, body("instruction: x"));
  EXPECT_EQ(owners_of(made, ".spec.instruction"), "a,b");
  EXPECT_EQ(generation_of(made), 1);
}

TEST(Apply, a_field_no_longer_applied_goes_unless_somebody_else_owns_it) {
  const json::Value first = applied_by(
      "a", nullptr, body("{instruction: x, skills: [s], limits: {maxTurns: 5}}", "{t: v, u: w}"));
  const json::Value dropped = applied_by("a", &first, body("instruction: x", "{t: v}"));
  EXPECT_EQ(dropped.get("spec").find("skills"), nullptr);
  EXPECT_EQ(dropped.at_path({"spec", "limits", "maxTurns"}), json::Value(60));  // the default again
  EXPECT_EQ(dropped.get("metadata").get("labels").dump(), R"({"t":"v"})");
  const json::Value shared = applied_by("b", &first, body("{instruction: x, skills: [s]}"));
  const json::Value kept = applied_by("a", &shared, body("instruction: x"));
  EXPECT_EQ(kept.at_path({"spec", "skills"}).dump(), R"(["s"])");
  EXPECT_EQ(owners_of(kept, ".spec.skills"), "b");
}

TEST(Apply, an_update_takes_fields_from_an_applier) {
  const json::Value live = applied_by("a", nullptr, body("{instruction: x, suspend: true}"));
  const json::Value edited = updated_by("editor", live, "suspend", false);
  EXPECT_EQ(owners_of(edited, ".spec.suspend"), "editor");
  EXPECT_EQ(complaint([&] { applied_by("a", &edited, body("{instruction: x, suspend: true}")); }),
            ".spec.suspend: conflict with \"editor\" using umpteenth.dev/v1alpha1");
  // Not applied any more: the editor's value stays.
  EXPECT_EQ(applied_by("a", &edited, body("instruction: x")).at_path({"spec", "suspend"}),
            json::Value(false));
}

TEST(Apply, lists_are_atomic) {
  const json::Value live = applied_by("a", nullptr, body("{instruction: x, outputs: [{name: a}]}"));
  EXPECT_EQ(complaint([&] {
              applied_by("b", &live, body("{instruction: x, outputs: [{name: a}, {name: b}]}"));
            }),
            ".spec.outputs: conflict with \"a\" using umpteenth.dev/v1alpha1");
}

TEST(Apply, kubectl_migrates_from_client_side_apply) {
  json::Value given = body("instruction: x");
  given["metadata"]["annotations"].set(kLastApplied, given.dump());
  WriteOptions o = options();
  o.field_manager = "kubectl-client-side-apply";
  const json::Value live = prepare_create(job_kind(), given, o).object;
  const json::Value made = applied_by("kubectl", &live, body("instruction: y"));
  EXPECT_EQ(made.at_path({"spec", "instruction"}), json::Value("y"));
  EXPECT_EQ(owners_of(made, ".spec.instruction"), "kubectl");
  EXPECT_EQ(json::parse(annotation_of(made, kLastApplied)).at_path({"spec", "instruction"}),
            json::Value("y"));
  // Another manager, or a live value that the annotation does not explain, is a conflict.
  EXPECT_NE(complaint([&] { applied_by("other", &live, body("instruction: y")); }), "");
  const json::Value edited = updated_by("editor", live, "instruction", "z");
  EXPECT_NE(complaint([&] { applied_by("kubectl", &edited, body("instruction: y")); }), "");
}

TEST(Apply, refusals) {
  const json::Value live = applied_by("a", nullptr, body("instruction: x"));
  EXPECT_EQ(complaint([&] { apply(job_kind(), &live, body("instruction: x"), {}); }),
            "fieldManager: Required value: is required for apply patch");
  json::Value given = body("instruction: x");
  given["metadata"].set("managedFields", parse_yaml_one("[{manager: a}]"));
  EXPECT_EQ(complaint([&] { applied_by("a", &live, given); }),
            "400: metadata.managedFields must be nil");
  EXPECT_EQ(complaint([&] { applied_by("a", &live, body("{instruction: x, nonsense: 1}")); }),
            "spec.nonsense: unknown field");
  given = body("instruction: y");
  given["metadata"].set("resourceVersion", "99");
  EXPECT_EQ(complaint([&] { applied_by("a", &live, given); }).substr(0, 4), "409:");
}

}  // namespace
}  // namespace umpteenth::apis
