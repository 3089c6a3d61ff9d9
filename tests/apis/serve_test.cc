#include "apis/serve.h"

#include "apis/model_provider.h"
#include "apis/run.h"
#include "apis/sandbox_engine.h"
#include "apis/secret.h"
#include "apis/workspace.h"
#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

// --- Status -----------------------------------------------------------------------------------

TEST(Status, is_what_kubectl_reads) {
  const ErrorSubject job{"umpteenth.dev", "jobs", "Job", "x"};
  EXPECT_EQ(status_of(Error(Code::not_found, "jobs.umpteenth.dev \"x\" not found"), job).dump(),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"jobs.umpteenth.dev \"x\" not found","reason":"NotFound",)"
            R"("details":{"name":"x","group":"umpteenth.dev","kind":"jobs"},"code":404})");
  const Error invalid(Code::invalid, "m", {{"spec.a", "Required value", "FieldValueRequired"}});
  EXPECT_EQ(
      status_of(invalid, job).get("details").dump(),
      R"({"name":"x","group":"umpteenth.dev","kind":"Job","causes":[{"reason":"FieldValueRequired",)"
      R"("message":"Required value","field":"spec.a"}]})");
  Error busy(Code::too_many_requests, "later");
  busy.retry_after(3);
  EXPECT_EQ(
      status_of(busy, {}).dump(),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"later",)"
      R"("reason":"TooManyRequests","details":{"retryAfterSeconds":3},"code":429})");
}

TEST(Status, comes_back_as_the_error_it_was) {
  Error error(Code::already_exists, "there", {{"spec.a", "m", "r"}});
  error.retry_after(2);
  const Error back = error_from_status(status_of(error, {}), 409);
  EXPECT_EQ(back.code(), Code::already_exists);
  EXPECT_EQ(back.message(), "there");
  EXPECT_EQ(back.causes(), error.causes());
  EXPECT_EQ(back.retry_after_seconds(), 2);
  EXPECT_EQ(error_from_status(json::Value(), 503).code(), Code::unavailable);
  EXPECT_EQ(error_from_status(json::Value(), 503).message(), "the server answered with status 503");
}

// --- Table ------------------------------------------------------------------------------------

std::string head(const json::Value& table, bool wide) {
  std::string all;
  for (const json::Value& c : table.get("columnDefinitions").items())
    if (wide || c.get_int("priority") == 0) all += (all.empty() ? "" : "|") + c.get_string("name");
  return all;
}

std::string row(const json::Value& table, size_t i = 0) {
  std::string all;
  for (const json::Value& c : table.get("rows").items().at(i).get("cells").items())
    all += (all.empty() ? "" : "|") + (c.is_string() ? c.as_string() : c.is_null() ? "" : c.dump());
  return all;
}

json::Value table_of(const Kind& kind, const json::Value& object) {
  return make_table(kind, {object}, IncludeObject::metadata, kNow + std::chrono::minutes(5), true);
}

TEST(Table, of_jobs) {
  json::Value job = created(
      job_kind(),
      a_job(
          "{instruction: x, schedule: {cron: 0 9 * * 1-5}, model: {provider: p, name: m}, sandbox: "
          "{dockerfile: FROM x}}"));
  job.set("status",
          parse_yaml_one(
              "{conditions: [{type: Ready, status: 'True'}], lastRun: {name: r, phase: Succeeded}, "
              "nextRunTime: '2026-11-30T10:05:00Z'}"));
  const json::Value table = table_of(job_kind(), job);
  EXPECT_EQ(head(table, false), "Name|Schedule|Network|Last|Next|Ready|Age");
  EXPECT_EQ(head(table, true), "Name|Schedule|Network|Last|Next|Ready|Age|Image|Model|Timeout");
  EXPECT_EQ(row(table), "a|0 9 * * 1-5|Internet|Succeeded|120m|True|5m|<dockerfile>|m|900s");
  job["metadata"].set("deletionTimestamp", "2026-11-30T10:00:00Z");
  EXPECT_EQ(row(table_of(job_kind(), job)),
            "a|0 9 * * 1-5|Internet|Succeeded|120m|Deleting|5m|<dockerfile>|m|900s");
  EXPECT_EQ(row(table_of(job_kind(), created(job_kind(), a_job()))),
            "a|<none>|Internet|<none>|<none>||5m|<default>|<default>|900s");
}

TEST(Table, of_runs_and_the_others) {
  json::Value run = created(run_kind(), an_object(run_kind(), "{job: j, trigger: API}"));
  EXPECT_EQ(row(table_of(run_kind(), run)), "a|j|Queued|API|5m|||Explore|||");
  RunStatus status;
  status.phase = Phase::succeeded;
  status.start_time = "2026-11-30T08:00:00Z";
  status.completion_time = "2026-11-30T08:01:30Z";
  status.cost_micro_usd = 1'250'000;
  status.turns = 4;
  status.sandbox.container = "0123456789abcdef";
  status.sandbox.image = "sha256:1";
  run.set("status", to_json(status));
  const json::Value runs = table_of(run_kind(), run);
  EXPECT_EQ(head(runs, true), "Name|Job|Phase|Trigger|Age|Duration|Cost|Mode|Turns|Image|Sandbox");
  EXPECT_EQ(head(runs, false), "Name|Job|Phase|Trigger|Age|Duration|Cost");
  EXPECT_EQ(row(runs), "a|j|Succeeded|API|5m|90s|$1.25|Explore|4|sha256:1|0123456789ab");

  json::Value secret =
      created(secret_kind(), an_object(secret_kind(), "{sealedData: {b: v1.x.y, a: v1.x.y}}"));
  EXPECT_EQ(head(table_of(secret_kind(), secret), true), "Name|Keys|Age");
  EXPECT_EQ(row(table_of(secret_kind(), secret)), "a|b,a|5m");

  json::Value provider =
      created(model_provider_kind(),
              an_object(model_provider_kind(), "{type: Scripted, models: [{name: m}]}"));
  EXPECT_EQ(head(table_of(model_provider_kind(), provider), true), "Name|Type|Ready|Models|Age");
  EXPECT_EQ(row(table_of(model_provider_kind(), provider)), "a|Scripted||1|5m");

  json::Value engine =
      created(sandbox_engine_kind(), an_object(sandbox_engine_kind(), "{}", "default"));
  engine.set(
      "status",
      parse_yaml_one("{conditions: [{type: Ready, status: 'True'}], egressFirewall: {state: "
                     "Enforced, repairs: 3}, "
                     "version: {engine: 20.10.24}, sandboxes: {running: 2}, attachment: network}"));
  EXPECT_EQ(head(table_of(sandbox_engine_kind(), engine), false),
            "Name|Type|Ready|Firewall|Running|Age");
  EXPECT_EQ(head(table_of(sandbox_engine_kind(), engine), true),
            "Name|Type|Ready|Firewall|Running|Age|Version|Attachment|Repairs");
  EXPECT_EQ(row(table_of(sandbox_engine_kind(), engine)),
            "default|Docker|True|Enforced|2|5m|20.10.24|network|3");

  json::Value workspace =
      created(workspace_kind(), an_object(workspace_kind(), "{members: [{user: a}]}"));
  workspace.set("status", parse_yaml_one("{jobs: 4, spendTodayUSD: 0.5}"));
  EXPECT_EQ(head(table_of(workspace_kind(), workspace), true), "Name|Members|Jobs|Spend Today|Age");
  EXPECT_EQ(row(table_of(workspace_kind(), workspace)), "a|1|4|$0.50|5m");
}

TEST(Table, of_the_core_views) {
  const json::Value ns = parse_yaml_one(
      "{kind: Namespace, apiVersion: v1, metadata: {name: web, creationTimestamp: "
      "'2026-11-30T08:00:00Z'}, status: {phase: Active}}");
  EXPECT_EQ(head(table_of(namespace_kind(), ns), true), "Name|Status|Age");
  EXPECT_EQ(row(table_of(namespace_kind(), ns)), "web|Active|5m");
  const json::Value event = parse_yaml_one(
      "{kind: Event, apiVersion: v1, metadata: {name: e}, involvedObject: {kind: Job, name: a}, "
      "reason: "
      "Started, message: hi, type: Normal, lastTimestamp: '2026-11-30T08:04:00Z', count: 2}");
  const json::Value events = table_of(event_kind(), event);
  EXPECT_EQ(head(events, false), "Name|Last Seen|Type|Reason|Object|Message");
  EXPECT_EQ(row(events), "e|60s|Normal|Started|job/a|hi||2");
}

TEST(Table, rows_carry_what_was_asked_for) {
  const json::Value job = created(job_kind(), a_job());
  const auto made = [&](IncludeObject include, bool columns) {
    return make_table(job_kind(), {job}, include, kNow, columns);
  };
  EXPECT_EQ(made(IncludeObject::none, true).get("rows").items()[0].find("object"), nullptr);
  const json::Value partial =
      made(IncludeObject::metadata, true).get("rows").items()[0].get("object");
  EXPECT_EQ(partial.get_string("kind"), "PartialObjectMetadata");
  EXPECT_EQ(partial.get("metadata"), job.get("metadata"));
  EXPECT_EQ(partial.find("spec"), nullptr);
  EXPECT_EQ(made(IncludeObject::object, true).get("rows").items()[0].get("object"), job);
  EXPECT_TRUE(made(IncludeObject::none, false).get("columnDefinitions").is_array());
  EXPECT_TRUE(made(IncludeObject::none, false).get("columnDefinitions").empty());
  const json::Value none = make_table(job_kind(), {}, IncludeObject::none, kNow, true);
  EXPECT_TRUE(none.get("rows").is_array());
  EXPECT_EQ(none.get("columnDefinitions").items()[0].dump(),
            R"({"name":"Name","type":"string","format":"name",)"
            R"("description":"Name, unique in its kind and workspace.","priority":0})");
}

TEST(Table, an_odd_object_does_not_hide_the_others) {
  json::Value odd = created(job_kind(), a_job());
  odd.set("status", parse_yaml_one("{nextRunTime: sometime}"));
  const json::Value table =
      make_table(job_kind(), {odd, created(job_kind(), a_job())}, IncludeObject::none, kNow, true);
  EXPECT_EQ(table.get("rows").size(), 2u);
  EXPECT_NE(row(table).find("<invalid>"), std::string::npos);
}

// --- discovery --------------------------------------------------------------------------------

TEST(Discovery, the_legacy_list) {
  const json::Value list = legacy_resource_list();
  EXPECT_EQ(list.get_string("kind"), "APIResourceList");
  EXPECT_EQ(list.get_string("groupVersion"), "umpteenth.dev/v1alpha1");
  EXPECT_EQ(list.get("resources").size(), 2 * kinds().size());
  EXPECT_EQ(
      list.get("resources").items()[0].dump(),
      R"({"name":"jobs","singularName":"job","namespaced":true,"kind":"Job",)"
      R"("verbs":["create","delete","deletecollection","get","list","patch","update","watch"],)"
      R"("shortNames":["uj"],"categories":["all","umpteenth"]})");
  EXPECT_EQ(list.get("resources").items()[1].dump(),
            R"({"name":"jobs/status","singularName":"","namespaced":true,"kind":"Job",)"
            R"("verbs":["get","patch","update"]})");
  EXPECT_EQ(core_resource_list().get_string("groupVersion"), "v1");
  EXPECT_EQ(core_resource_list().get("resources").size(), 2u);
}

TEST(Discovery, the_aggregated_list) {
  const json::Value list = aggregated_discovery();
  EXPECT_EQ(list.get_string("kind"), "APIGroupDiscoveryList");
  EXPECT_EQ(list.get_string("apiVersion"), "apidiscovery.k8s.io/v2");
  const json::Value& item = list.get("items").items()[0];
  EXPECT_EQ(item.get("metadata").dump(), R"({"creationTimestamp":null,"name":"umpteenth.dev"})");
  const json::Value& version = item.get("versions").items()[0];
  EXPECT_EQ(version.get_string("version"), "v1alpha1");
  EXPECT_EQ(version.get_string("freshness"), "Current");
  EXPECT_EQ(
      version.get("resources").items()[0].dump(),
      R"({"resource":"jobs","responseKind":{"group":"umpteenth.dev","version":"v1alpha1",)"
      R"("kind":"Job"},"scope":"Namespaced","singularResource":"job",)"
      R"("verbs":["create","delete","deletecollection","get","list","patch","update","watch"],)"
      R"("shortNames":["uj"],"categories":["all","umpteenth"],"subresources":[{"subresource":)"
      R"("status","responseKind":{"group":"umpteenth.dev","version":"v1alpha1","kind":"Job"},)"
      R"("verbs":["get","patch","update"]}]})");
  EXPECT_EQ(version.get("resources").items()[3].get_string("scope"), "Cluster");
  EXPECT_EQ(core_aggregated_discovery().get("items").items()[0].get("metadata").find("name"),
            nullptr);
}

// --- OpenAPI ----------------------------------------------------------------------------------

TEST(OpenApi, has_what_kubectl_needs) {
  const json::Value document = openapi_v3();
  EXPECT_EQ(document.get_string("openapi"), "3.0.0");
  for (const Kind* k : kinds()) {
    const std::string base = std::string("/apis/umpteenth.dev/v1alpha1/") +
                             (k->namespaced() ? "namespaces/{namespace}/" : "") + k->plural;
    const json::Value gvk = json::Value::object(
        {{"group", "umpteenth.dev"}, {"version", "v1alpha1"}, {"kind", k->kind}});
    const json::Value& patch = document.at_path({"paths", base + "/{name}", "patch"});
    EXPECT_EQ(patch.get("x-kubernetes-group-version-kind"), gvk) << k->kind;
    EXPECT_EQ(document.at_path({"paths", base, "get", "x-kubernetes-group-version-kind"}), gvk);
    bool validates = false;
    for (const json::Value& p : patch.get("parameters").items())
      validates = validates || p.get_string("name") == "fieldValidation";
    EXPECT_TRUE(validates) << k->kind;
    const json::Value& schema =
        document.at_path({"components", "schemas", "dev.umpteenth.v1alpha1." + k->kind});
    EXPECT_EQ(schema.get("x-kubernetes-group-version-kind"), json::Value::array({gvk}));
    EXPECT_EQ(schema.at_path({"properties", "spec"}), k->spec_schema) << k->kind;
    EXPECT_FALSE(schema.get_string("description").empty());
  }
  EXPECT_EQ(document.dump().find("strategic-merge-patch"), std::string::npos);
}

TEST(OpenApi, every_reference_leads_somewhere) {
  for (const json::Value& document : {openapi_v3(), core_openapi_v3()}) {
    const std::string text = document.dump();
    const std::string mark = "#/components/schemas/";
    size_t found = 0;
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; ++found) {
      at += mark.size();
      const std::string name = text.substr(at, text.find('"', at) - at);
      EXPECT_TRUE(document.at_path({"components", "schemas", name}).is_object()) << name;
    }
    EXPECT_GT(found, 10u);
  }
  EXPECT_TRUE(
      core_openapi_v3().at_path({"paths", "/api/v1/namespaces/{namespace}/events"}).is_object());
  EXPECT_TRUE(core_openapi_v3().at_path({"paths", "/api/v1/namespaces/{name}"}).is_object());
}

}  // namespace
}  // namespace umpteenth::apis
