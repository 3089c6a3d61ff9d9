#include "apis/lifecycle.h"

#include "apis/run.h"
#include "apis/sandbox_engine.h"
#include "apis/serve.h"
#include "apis/workspace.h"
#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

TEST(Create, fills_in_defaults_and_metadata) {
  const json::Value job = created(job_kind(), a_job());
  EXPECT_EQ(uid_of(job), kUid);
  EXPECT_EQ(generation_of(job), 1);
  EXPECT_EQ(created_at(job), kNow);
  EXPECT_EQ(job.at_path({"spec", "limits", "timeoutSeconds"}), json::Value(900));
  EXPECT_EQ(job.at_path({"spec", "network", "mode"}), json::Value("Internet"));
  EXPECT_EQ(job.members()[0].key, "apiVersion");
}

TEST(Create, server_owned_metadata_and_status_of_the_body_do_not_count) {
  json::Value job = a_job();
  job["metadata"].set("uid", "theirs");
  job["metadata"].set("generation", 9);
  job["metadata"].set("creationTimestamp", "2001-01-01T00:00:00.000Z");
  job["metadata"].set("deletionTimestamp", "2001-01-01T00:00:00Z");
  job["metadata"].set("selfLink", "/x");
  job.set("status", json::Value::object({{"phase", "Odd"}}));
  const json::Value made = created(job_kind(), job);
  EXPECT_EQ(uid_of(made), kUid);
  EXPECT_EQ(generation_of(made), 1);
  EXPECT_EQ(created_at(made), kNow);
  EXPECT_FALSE(deleting(made));
  EXPECT_EQ(made.get("metadata").find("selfLink"), nullptr);
  EXPECT_EQ(made.find("status"), nullptr);
}

TEST(Create, generate_name_makes_a_name) {
  json::Value job = a_job();
  job["metadata"].erase("name");
  job["metadata"].set("generateName", "digest-");
  const std::string a = name_of(created(job_kind(), job)), b = name_of(created(job_kind(), job));
  EXPECT_EQ(a.size(), 12u);
  EXPECT_EQ(a.rfind("digest-", 0), 0u);
  EXPECT_NE(a, b);
  job["metadata"].set("generateName", std::string(253, 'x'));
  EXPECT_EQ(name_of(created(job_kind(), job)).size(), 253u);
}

TEST(Create, finalizers_of_controllers_are_there_from_the_beginning_to_the_deletion) {
  WriteOptions o = options();
  o.field_manager = "kubectl";
  o.finalizers = {"umpteenth.dev/runs"};
  json::Value job = a_job();
  job["metadata"].set("finalizers", json::Value::strings({"example.com/theirs"}));
  const json::Value made = prepare_create(job_kind(), job, o).object;
  EXPECT_EQ(made.at_path({"metadata", "finalizers"}),
            json::Value::strings({"example.com/theirs", "umpteenth.dev/runs"}));
  EXPECT_EQ(made.at_path({"metadata", "managedFields"}).dump().find("umpteenth.dev/runs"),
            std::string::npos)
      << "no client owns it";

  json::Value without = made;
  without["metadata"].erase("finalizers");
  EXPECT_EQ(prepare_update(job_kind(), made, without, o).object.at_path({"metadata", "finalizers"}),
            json::Value::strings({"umpteenth.dev/runs"}));
  json::Value leaving = *prepare_delete(made, kNow);
  without["metadata"].erase("resourceVersion");
  EXPECT_TRUE(ready_to_remove(prepare_update(job_kind(), leaving, without, o).object));
}

TEST(Create, texts_hold_no_control_characters) {
  json::Value job = a_job();
  const auto refusal = [&](const char* text) {
    job["spec"].set("instruction", text);
    return complaint([&] { created(job_kind(), job); });
  };
  const std::string rule =
      "spec.instruction in body must not contain control characters other than line feed and tab: ";
  job["spec"].set("instruction", std::string("a\0b", 3));
  EXPECT_EQ(complaint([&] { created(job_kind(), job); }),
            "spec.instruction: Invalid value: \"a\\u0000b\": " + rule + "U+0000 at character 2");
  EXPECT_NE(refusal("ä\x1b[2J").find(rule + "U+001B at character 2"), std::string::npos);
  EXPECT_NE(refusal("rm\rls").find(rule + "U+000D at character 3"), std::string::npos);
  EXPECT_NE(refusal("a\x7f").find(rule + "U+007F at character 2"), std::string::npos);
  EXPECT_NE(refusal("a\xc2\x9b").find(rule + "U+009B at character 2"), std::string::npos);
  EXPECT_EQ(refusal("one\n\ttwo \xc2\xa0 \xe2\x80\xa6 \xf0\x9f\x98\x80"), "");
  job["metadata"]["annotations"].set("example.com/note", "bell\a");
  EXPECT_NE(complaint([&] { created(job_kind(), job); }).find("U+0007"), std::string::npos);
}

TEST(Create, what_is_kept_as_it_comes_may_hold_them) {
  json::Value run = an_object(run_kind(), "{job: a}");
  run["spec"].set("input", json::Value::object({{"bytes", std::string("a\0b", 3)}}));
  json::Value made = created(run_kind(), run);
  made.set("status", json::Value::object({{"phase", "Failed"}, {"summary", "\x1b[1mbold"}}));
  EXPECT_EQ(complaint([&] { prepare_status_update(run_kind(), made, made, options()); }), "");
}

TEST(Create, the_body_must_be_of_the_kind) {
  const auto refused = [](const char* yaml) {
    return complaint([&] { prepare_create(job_kind(), parse_yaml_one(yaml), options()); });
  };
  EXPECT_EQ(refused("[]"), "400: the body must be a JSON object, found array");
  EXPECT_EQ(refused("a: 1"), "400: Object 'Kind' is missing in the body");
  EXPECT_EQ(refused("kind: Job"), "400: Object 'apiVersion' is missing in the body");
  EXPECT_EQ(refused("{kind: Run, apiVersion: umpteenth.dev/v1alpha1}"),
            "400: the kind in the data (Run) does not match the expected kind (Job)");
  EXPECT_EQ(refused("{kind: Job, apiVersion: batch/v1}"),
            "400: the API version in the data (batch/v1) does not match the expected API version "
            "(umpteenth.dev/v1alpha1)");
  EXPECT_EQ(refused("{kind: Job, apiVersion: umpteenth.dev/v1alpha1, metadata: {name: a, "
                    "namespace: b, resourceVersion: '5'}, spec: {instruction: x}}"),
            "400: resourceVersion should not be set on objects to be created");
  EXPECT_EQ(refused("{kind: Job, apiVersion: umpteenth.dev/v1alpha1, metadata: 5}"),
            "spec: Required value\n"
            "metadata: Invalid value: \"integer\": metadata in body must be of type object: "
            "\"integer\"");
}

TEST(Create, unknown_fields_are_refused_warned_about_or_dropped) {
  json::Value job = a_job("{instruction: x, instructoin: y, limits: {maxTurn: 5}}");
  job.set("extra", 1);
  job["metadata"].set("labls", json::Value::object());
  try {
    prepare_create(job_kind(), job, options(FieldValidation::strict));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::bad_request);
    EXPECT_EQ(e.message(),
              "Job in version \"v1alpha1\" cannot be handled as a Job: strict decoding error: "
              "unknown field \"metadata.labls\", unknown field \"spec.instructoin\", unknown field "
              "\"spec.limits.maxTurn\", unknown field \"extra\"");
  }
  const Admitted warned = prepare_create(job_kind(), job, options(FieldValidation::warn));
  EXPECT_EQ(warned.warnings.size(), 4u);
  EXPECT_EQ(warned.warnings[1], "unknown field \"spec.instructoin\"");
  EXPECT_EQ(warned.object.find("extra"), nullptr);
  const Admitted quiet = prepare_create(job_kind(), job, options(FieldValidation::ignore));
  EXPECT_TRUE(quiet.warnings.empty());
  EXPECT_EQ(quiet.object, warned.object);
}

TEST(Create, a_thousand_unknown_fields_are_not_all_named) {
  json::Value job = a_job();
  for (int i = 0; i < 1000; ++i) job["spec"].set("f" + std::to_string(i), i);
  const Admitted made = prepare_create(job_kind(), job, options(FieldValidation::warn));
  EXPECT_EQ(made.warnings.size(), 51u);
  EXPECT_EQ(made.warnings.back(), "and 950 more unknown fields");
}

TEST(Create, metadata_rules) {
  const std::string owner = "apiVersion: umpteenth.dev/v1alpha1, kind: Job, name: a, uid: ";
  const std::string uid = "11111111-2222-4333-8444-555555555555";
  const std::pair<std::string, std::string> table[] = {
      {"{name: a.b-c}", ""},
      {"{name: " + std::string(253, 'a') + "}", ""},
      {"{}", "metadata.name: Required value: name or generateName is required"},
      {"{name: A}", "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
      {"{name: a_b}", "metadata.name: Invalid value"},
      {"{name: -a}", "metadata.name: Invalid value"},
      {"{name: a..b}", "metadata.name: Invalid value"},
      {"{name: " + std::string(254, 'a') + "}", "must be no more than 253 characters"},
      {"{name: a, namespace: ''}", "metadata.namespace: Required value"},
      {"{name: a, namespace: A}",
       "metadata.namespace: Invalid value: \"A\": a lowercase RFC 1123 label"},
      {"{name: a, labels: {k: v, x.y/k: ''}}", ""},
      {"{name: a, labels: {-k: v}}", "metadata.labels: Invalid value: \"-k\": name part"},
      {"{name: a, labels: {X.y/k: v}}", "metadata.labels: Invalid value: \"X.y/k\""},
      {"{name: a, labels: {k: 'a b'}}", "metadata.labels: Invalid value: \"a b\": a valid label"},
      {"{name: a, labels: {k: " + std::string(64, 'a') + "}}", "at most 63 characters"},
      {"{name: a, labels: {k: 1}}", "metadata.labels.k in body must be of type string"},
      {"{name: a, annotations: {k: 'any thing\nat all'}}", ""},
      {"{name: a, annotations: {'a b': x}}", "metadata.annotations: Invalid value: \"a b\""},
      {"{name: a, annotations: {k: " + std::string(262145, 'x') + "}}",
       "metadata.annotations: Too long: may not be more than 262144 bytes"},
      {"{name: a, finalizers: [umpteenth.dev/runs]}", ""},
      {"{name: a, finalizers: ['not one']}", "metadata.finalizers[0]: Invalid value: \"not one\""},
      {"{name: a, ownerReferences: [{" + owner + uid + "}]}", ""},
      {"{name: a, ownerReferences: [{kind: Job, name: a}]}",
       "metadata.ownerReferences[0].apiVersion: Required value"},
      {"{name: a, ownerReferences: [{" + owner + "x}]}", "must be the owner's uid, a UUID"},
      {"{name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: " + uid + "}]}",
       "an owner must be of umpteenth.dev/v1alpha1"},
      {"{name: a, ownerReferences: [{apiVersion: umpteenth.dev/v1alpha1, kind: Nope, name: a, "
       "uid: " +
           uid + "}]}",
       "metadata.ownerReferences[0].kind: Invalid value: \"Nope\": no such kind"},
      {"{name: a, ownerReferences: [{" + owner + uid + ", controller: true}, {" + owner + uid +
           ", controller: true}]}",
       "only one reference can have controller set to true, found 2"},
  };
  for (const auto& [yaml, part] : table) {
    json::Value job = a_job();
    json::Value metadata = parse_yaml_one(yaml);
    if (!metadata.find("namespace")) metadata.set("namespace", "default");
    job.set("metadata", metadata);
    const std::string said = complaint([&] { prepare_create(job_kind(), job, options()); });
    if (part.empty())
      EXPECT_EQ(said, "") << yaml.substr(0, 200);
    else
      EXPECT_NE(said.find(part), std::string::npos) << yaml.substr(0, 200) << "\n" << said;
  }
}

TEST(Create, an_owner_lives_in_the_workspace_or_the_cluster) {
  const json::Value owners = parse_yaml_one(
      "[{apiVersion: umpteenth.dev/v1alpha1, kind: Job, name: a, uid: "
      "11111111-2222-4333-8444-555555555555}]");
  json::Value engine = an_object(sandbox_engine_kind(), "{}");
  engine["metadata"].set("ownerReferences", owners);
  EXPECT_NE(complaint([&] {
              prepare_create(sandbox_engine_kind(), engine, options());
            }).find("a cluster-scoped object cannot be owned by one that lives in a workspace"),
            std::string::npos);
  engine["metadata"].erase("ownerReferences");
  engine["metadata"].set("namespace", "default");
  EXPECT_EQ(complaint([&] { prepare_create(sandbox_engine_kind(), engine, options()); }),
            "metadata.namespace: Forbidden: not allowed on this type");
}

TEST(Create, several_complaints_come_together_in_one_message) {
  try {
    prepare_create(job_kind(), a_job("{instruction: '', limits: {timeoutSeconds: 5, maxTurns: 0}}"),
                   options());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    EXPECT_EQ(e.causes().size(), 3u);
    EXPECT_EQ(e.message().rfind("Job.umpteenth.dev \"a\" is invalid: [spec.instruction: Invalid "
                                "value: \"\": ",
                                0),
              0u)
        << e.message();
  }
}

// --- update ----------------------------------------------------------------------------------

json::Value stored_job() {
  json::Value job = created(job_kind(), a_job());
  job["metadata"].set("resourceVersion", "7");
  job.set("status", json::Value::object({{"nextRunTime", "x"}}));
  return job;
}

TEST(Update, generation_counts_changes_of_spec_only) {
  const json::Value old = stored_job();
  json::Value changed = old;
  changed["metadata"]["labels"].set("team", "web");
  const json::Value labelled = prepare_update(job_kind(), old, changed, options()).object;
  EXPECT_EQ(generation_of(labelled), 1);
  changed["spec"].set("instruction", "other");
  EXPECT_EQ(generation_of(prepare_update(job_kind(), old, changed, options()).object), 2);
  EXPECT_EQ(prepare_update(job_kind(), old, old, options()).object, old);
}

TEST(Update, status_and_server_metadata_stay) {
  const json::Value old = stored_job();
  json::Value given = a_job("instruction: other");
  given.set("status", json::Value::object({{"nextRunTime", "theirs"}}));
  given["metadata"].set("generation", 77);
  given["metadata"].set("creationTimestamp", nullptr);
  const json::Value made = prepare_update(job_kind(), old, given, options()).object;
  EXPECT_EQ(made.at_path({"status", "nextRunTime"}), json::Value("x"));
  EXPECT_EQ(uid_of(made), kUid);
  EXPECT_EQ(created_at(made), kNow);
  EXPECT_EQ(generation_of(made), 2);
}

TEST(Update, versions_and_identities_must_fit) {
  const json::Value old = stored_job();
  const auto with = [&](const char* field, const char* value) {
    json::Value given = old;
    given["metadata"].set(field, value);
    return complaint([&] { prepare_update(job_kind(), old, given, options()); });
  };
  EXPECT_EQ(with("resourceVersion", "7"), "");
  EXPECT_EQ(with("resourceVersion", "6"),
            "409: Operation cannot be fulfilled on jobs.umpteenth.dev \"a\": the object has been "
            "modified; please apply your changes to the latest version and try again");
  EXPECT_EQ(with("uid", "11111111-2222-4333-8444-000000000000"),
            "409: Operation cannot be fulfilled on jobs.umpteenth.dev \"a\": Precondition failed: "
            "UID in precondition: 11111111-2222-4333-8444-000000000000, UID in object meta: " +
                std::string(kUid));
  EXPECT_EQ(with("name", "b"), "metadata.name: Invalid value: \"b\": field is immutable");
  EXPECT_EQ(with("namespace", "b"), "metadata.namespace: Invalid value: \"b\": field is immutable");
}

TEST(Update, a_dying_object_takes_no_new_finalizers) {
  json::Value old = stored_job();
  add_finalizer(old, "umpteenth.dev/runs");
  old = *prepare_delete(old, kNow);
  EXPECT_EQ(generation_of(old), 2);
  json::Value given = old;
  add_finalizer(given, "x.y/z");
  EXPECT_NE(
      complaint([&] { prepare_update(job_kind(), old, given, options()); })
          .find("metadata.finalizers: Forbidden: no new finalizers can be added if the object "
                "is being deleted"),
      std::string::npos);
  EXPECT_FALSE(ready_to_remove(old));
  for (const json::Value& none : {json::Value(nullptr), json::Value::array()}) {
    given = old;
    given["metadata"].set("finalizers", none);
    const json::Value made = prepare_update(job_kind(), old, given, options()).object;
    EXPECT_TRUE(deleting(made));
    EXPECT_TRUE(ready_to_remove(made));
  }
}

TEST(Delete, goes_at_once_only_without_finalizers) {
  json::Value job = stored_job();
  EXPECT_EQ(prepare_delete(job, kNow), std::nullopt);
  add_finalizer(job, "umpteenth.dev/runs");
  const json::Value dying = *prepare_delete(job, kNow);
  EXPECT_EQ(dying.get("metadata").get_string("deletionTimestamp"), "2026-11-30T08:00:00Z");
  EXPECT_EQ(dying.get("metadata").get_int("deletionGracePeriodSeconds", 9), 0);
  EXPECT_EQ(*prepare_delete(dying, kNow + std::chrono::hours(1)), dying);
}

TEST(StatusUpdate, only_status_counts_and_generation_stays) {
  const json::Value old = stored_job();
  json::Value given = old;
  given["spec"].set("instruction", "other");
  given["metadata"]["labels"].set("a", "b");
  given.set("status", parse_yaml_one("{observedGeneration: 1, conditions: [{type: Ready, status: "
                                     "'True'}], somethingNew: 1}"));
  const json::Value made = prepare_status_update(job_kind(), old, given, options()).object;
  EXPECT_EQ(made.get("spec"), old.get("spec"));
  EXPECT_EQ(made.get("metadata"), old.get("metadata"));
  EXPECT_EQ(made.at_path({"status", "somethingNew"}), json::Value(1));
  given["status"]["conditions"].push_back(parse_yaml_one("{type: Ready, status: Maybe}"));
  EXPECT_EQ(
      complaint([&] { prepare_status_update(job_kind(), old, given, options()); }),
      "status.conditions[1].status: Unsupported value: \"Maybe\": supported values: \"True\", "
      "\"False\", \"Unknown\"\n"
      "status.conditions[1]: Duplicate value: {\"type\":\"Ready\"}");
  given["metadata"].set("resourceVersion", "3");
  EXPECT_EQ(
      complaint([&] { prepare_status_update(job_kind(), old, given, options()); }).substr(0, 4),
      "409:");
}

// --- managedFields ---------------------------------------------------------------------------

std::vector<std::string> owners(const json::Value& object) {
  std::vector<std::string> all;
  const json::Value& entries = object.get("metadata").get("managedFields");
  if (entries.is_array())
    for (const json::Value& e : entries.items())
      all.push_back(e.get_string("manager") + " " + e.get_string("operation") + " " +
                    e.get("fieldsV1").dump());
  return all;
}

TEST(ManagedFields, an_update_takes_over_what_it_changed) {
  WriteOptions by = options();
  by.field_manager = "kubectl-create";
  json::Value job = a_job("{instruction: x, outputs: [{name: a}]}");
  job["metadata"]["labels"].set("a.b/c", "d");
  const json::Value old = prepare_create(job_kind(), job, by).object;
  ASSERT_EQ(owners(old).size(), 1u);
  EXPECT_NE(owners(old)[0].find("\"f:labels\":{\"f:a.b/c\":{}}"), std::string::npos);
  EXPECT_NE(owners(old)[0].find("\"f:outputs\":{}"), std::string::npos);

  json::Value given = old;
  given["spec"].set("instruction", "y");
  by.field_manager = "kubectl-edit";
  const json::Value made = prepare_update(job_kind(), old, given, by).object;
  ASSERT_EQ(owners(made).size(), 2u);
  EXPECT_EQ(owners(made)[0].find("f:instruction"), std::string::npos);
  EXPECT_EQ(owners(made)[1], "kubectl-edit Update {\"f:spec\":{\"f:instruction\":{}}}");

  // Nothing changed, so nothing is recorded, not even a time.
  by.now += std::chrono::hours(1);
  EXPECT_EQ(prepare_update(job_kind(), made, made, by).object, made);
}

TEST(ManagedFields, a_writer_may_rewrite_or_clear_them) {
  WriteOptions by = options();
  by.field_manager = "m";
  const json::Value old = prepare_create(job_kind(), a_job(), by).object;
  json::Value given = old;
  given["metadata"].erase("managedFields");
  EXPECT_EQ(prepare_update(job_kind(), old, given, by).object, old);
  for (const char* clear : {"[]", "[{}]"}) {
    given["metadata"].set("managedFields", parse_yaml_one(clear));
    EXPECT_EQ(owners(prepare_update(job_kind(), old, given, by).object),
              std::vector<std::string>());
  }
  given["metadata"].set("managedFields",
                        parse_yaml_one("[{manager: k, operation: Apply, apiVersion: x, fieldsType: "
                                       "FieldsV1, fieldsV1: {'f:spec': "
                                       "{'f:instruction': {}}}}]"));
  EXPECT_EQ(owners(prepare_update(job_kind(), old, given, by).object),
            std::vector<std::string>{"k Apply {\"f:spec\":{\"f:instruction\":{}}}"});
}

TEST(ManagedFields, status_has_its_own_entries) {
  const json::Value old = stored_job();
  WriteOptions by = options();
  by.field_manager = "umpd";
  json::Value given = old;
  given["status"].set("nextRunTime", "later");
  const json::Value made = prepare_status_update(job_kind(), old, given, by).object;
  ASSERT_EQ(owners(made).size(), 1u);
  EXPECT_EQ(owners(made)[0], "umpd Update {\"f:status\":{\"f:nextRunTime\":{}}}");
  EXPECT_EQ(made.get("metadata").get("managedFields").items()[0].get_string("subresource"),
            "status");
}

// --- conditions ------------------------------------------------------------------------------

TEST(Conditions, the_transition_time_moves_with_the_status_only) {
  json::Value status = json::Value::object();
  set_condition(status, {"Ready", "False", "Waiting", "for x", 1}, kNow);
  set_condition(status, {"Ready", "False", "Waiting", "for y", 2}, kNow + std::chrono::hours(1));
  EXPECT_EQ(status.get("conditions").items()[0].get_string("lastTransitionTime"),
            "2026-11-30T08:00:00Z");
  set_condition(status, {"Ready", "True", "Done", "", 2}, kNow + std::chrono::hours(2));
  set_condition(status, {"Other", "True", "Done", "", 2}, kNow);
  EXPECT_EQ(status.get("conditions").size(), 2u);
  const json::Value object = json::Value::object({{"status", status}});
  EXPECT_EQ(find_condition(object, "Ready")->reason, "Done");
  EXPECT_EQ(status.get("conditions").items()[0].get_string("lastTransitionTime"),
            "2026-11-30T10:00:00Z");
  EXPECT_EQ(find_condition(object, "None"), std::nullopt);
}

TEST(JobLabel, fits_a_label_for_any_job_name) {
  EXPECT_EQ(job_label_value("short"), "short");
  const std::string a = job_label_value(std::string(200, 'a') + "1");
  EXPECT_EQ(a.size(), 63u);
  EXPECT_NE(a, job_label_value(std::string(200, 'a') + "2"));
}

}  // namespace
}  // namespace umpteenth::apis
