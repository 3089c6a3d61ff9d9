#include <gtest/gtest.h>

#include "apis/object.h"
#include "controllers/job/plan.h"
#include "controllers/job/references.h"
#include "tests/controllers/support.h"

namespace umpteenth::controllers::job {
namespace {

using apis::Phase;

// Shows only what matters to the test.
struct a_job {
  json::Value object = json::parse(R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job",
    "metadata":{"name":"j","namespace":"default","uid":"u1","generation":2,
                "creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["umpteenth.dev/runs"]},
    "spec":{"instruction":"x","model":{"provider":"main","name":"m"}}})");
  a_job& schedule(const char* cron, const char* zone = "UTC", const char* policy = "Skip") {
    object["spec"].set(
        "schedule",
        json::Value::object({{"cron", cron}, {"timeZone", zone}, {"overlapPolicy", policy}}));
    return *this;
  }
  a_job& seen_since(const char* cron, const char* zone, const char* since) {
    object["status"].set(
        "schedule", json::Value::object({{"cron", cron}, {"timeZone", zone}, {"since", since}}));
    return *this;
  }
  a_job& with(const char* field, const char* value) {
    object["spec"].set(field, json::parse(value));
    return *this;
  }
  a_job& deleting() {
    object["metadata"].set("deletionTimestamp", "2026-01-02T00:00:00Z");
    return *this;
  }
};

RunOf a_run(const char* name, Phase phase, const char* scheduled_for = "") {
  return {
      name, phase, false, scheduled_for, at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z")};
}

Observed everything() {
  Observed observed;
  observed.providers["main"] = {"m"};
  return observed;
}

std::vector<std::string> actions(const Plan& p) {
  std::vector<std::string> texts;
  for (const auto& action : p.actions) texts.push_back(to_string(action));
  return texts;
}

std::string reason(const json::Value& status, const char* type) {
  auto condition = apis::find_condition(json::Value::object({{"status", status}}), type);
  return condition ? condition->status + " " + condition->reason : "absent";
}

using Texts = std::vector<std::string>;

TEST(JobPlan, a_new_schedule_starts_nothing_that_was_due_before_it_was_seen) {
  Plan p = plan(a_job().schedule("0 * * * *").object, everything(), at("2026-03-01T10:30:00Z"));
  EXPECT_EQ(actions(p), Texts{});
  EXPECT_EQ(p.status.get_string("nextRunTime"), "2026-03-01T11:00:00Z");
  EXPECT_EQ(p.status.at_path({"schedule"}).get_string("since"), "2026-03-01T10:30:00Z");
  EXPECT_EQ(p.look_again, Duration(30 * 60'000));
  EXPECT_EQ(reason(p.status, "Scheduled"), "True Scheduled");
  EXPECT_EQ(reason(p.status, "Ready"), "True Ready");
  EXPECT_EQ(p.status.get_int("observedGeneration"), 2);
}

TEST(JobPlan, missed_occurrences_start_one_run) {
  auto job = a_job().schedule("* * * * *").seen_since("* * * * *", "UTC", "2025-01-01T00:00:00Z");
  Plan p = plan(job.object, everything(), at("2026-03-01T10:30:20Z"));
  EXPECT_EQ(actions(p), Texts{"start run for 2026-03-01T10:30:00Z"}) << "a year of minutes";
  EXPECT_EQ(p.status.get_string("lastScheduleTime"), "2026-03-01T10:30:00Z");
}

TEST(JobPlan, an_occurrence_that_has_its_run_starts_no_second_one) {
  auto job = a_job().schedule("0 * * * *").seen_since("0 * * * *", "UTC", "2026-03-01T00:00:00Z");
  Observed observed = everything();
  observed.runs = {a_run("j-1", Phase::succeeded, "2026-03-01T10:00:00Z")};
  Time now = at("2026-03-01T10:00:05Z");
  EXPECT_EQ(actions(plan(job.object, observed, now)), Texts{}) << "status lost, run there";
  job.object["status"].set("lastScheduleTime", "2026-03-01T10:00:00Z");
  EXPECT_EQ(actions(plan(job.object, everything(), now)), Texts{}) << "run pruned, status there";
}

TEST(JobPlan, a_changed_or_resumed_schedule_makes_up_for_nothing) {
  auto changed =
      a_job().schedule("0 * * * *").seen_since("30 * * * *", "UTC", "2026-01-01T00:00:00Z");
  EXPECT_EQ(actions(plan(changed.object, everything(), at("2026-03-01T10:00:05Z"))), Texts{});
  auto suspended =
      a_job().schedule("0 * * * *").seen_since("0 * * * *", "UTC", "2026-01-01T00:00:00Z");
  suspended.with("suspend", "true");
  Plan p = plan(suspended.object, everything(), at("2026-03-01T10:00:05Z"));
  EXPECT_EQ(actions(p), Texts{});
  EXPECT_EQ(reason(p.status, "Scheduled"), "False Suspended");
  EXPECT_TRUE(p.status.get("nextRunTime").is_null());
  suspended.object.set("status", p.status);
  suspended.with("suspend", "false");
  EXPECT_EQ(actions(plan(suspended.object, everything(), at("2026-03-01T10:00:06Z"))), Texts{});
}

TEST(JobPlan, a_clock_set_back_does_not_silence_the_schedule) {
  auto job = a_job().schedule("0 * * * *").seen_since("0 * * * *", "UTC", "2026-03-01T00:00:00Z");
  job.object["status"].set("lastScheduleTime", "2099-01-01T00:00:00Z");
  Plan p = plan(job.object, everything(), at("2026-03-01T10:30:00Z"));
  EXPECT_EQ(p.status.get_string("nextRunTime"), "2026-03-01T11:00:00Z");
  job.object.set("status", p.status);
  job.object["status"].set("lastScheduleTime", "2026-03-01T10:00:00Z");
  EXPECT_EQ(actions(plan(job.object, everything(), at("2026-03-01T11:00:00Z"))),
            Texts{"start run for 2026-03-01T11:00:00Z"});
}

TEST(JobPlan, a_provider_that_is_not_ready_makes_no_job_ready) {
  Observed observed = everything();
  observed.provider_problems["main"] = "spec.apiKey: secret key does not exist";
  Plan p = plan(a_job().object, observed, at("2026-03-01T10:00:00Z"));
  EXPECT_EQ(reason(p.status, "Ready"), "False ProviderNotReady");
  auto condition =
      apis::find_condition(json::Value::object({{"status", p.status}}), "ModelResolved");
  EXPECT_EQ(condition->message, "model provider main: spec.apiKey: secret key does not exist");
  observed.provider_problems = {{"another", "x"}};
  EXPECT_EQ(reason(plan(a_job().object, observed, at("2026-03-01T10:00:00Z")).status, "Ready"),
            "True Ready");
}

TEST(JobPlan, a_disk_limit_counts_only_against_an_engine_that_has_none) {
  auto job = a_job().with("sandbox", R"({"resources":{"diskMiB":10},"engine":"big"})");
  Observed observed = everything();
  Time now = at("2026-03-01T10:00:00Z");
  EXPECT_EQ(reason(plan(job.object, observed, now).status, "Ready"), "True Ready") << "not known";
  observed.disk_limits = {{"default", false}, {"big", true}};
  EXPECT_EQ(reason(plan(job.object, observed, now).status, "Ready"), "True Ready");
  observed.disk_limits["big"] = false;
  EXPECT_EQ(reason(plan(job.object, observed, now).status, "Ready"), "False DiskLimitUnsupported");
  observed.workspace.emplace().defaults.resources.disk_mib = 10;
  auto by_default = a_job();
  EXPECT_EQ(reason(plan(by_default.object, observed, now).status, "Ready"),
            "False DiskLimitUnsupported")
      << "the workspace's default";
}

struct DstCase {
  const char *zone, *cron, *from, *to;
  size_t starts;
};

// The jump forward: 02:30 does not exist and fires once, just after. The jump back: it exists twice
// and fires once.
TEST(JobPlan, days_of_the_clock_change_have_one_run_in_each_zone) {
  const std::vector<DstCase> cases{
      {"Europe/Berlin", "30 2 * * *", "2026-03-28T22:30:00Z", "2026-03-29T22:30:00Z", 1},
      {"Europe/Berlin", "30 2 * * *", "2026-10-24T22:30:00Z", "2026-10-25T22:30:00Z", 1},
      {"America/New_York", "30 2 * * *", "2026-03-08T05:00:00Z", "2026-03-09T05:00:00Z", 1},
      {"America/New_York", "30 1 * * *", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 1},
      {"Australia/Sydney", "30 2 * * *", "2026-10-03T14:00:00Z", "2026-10-04T13:00:00Z", 1},
      {"Australia/Sydney", "30 2 * * *", "2026-04-04T13:00:00Z", "2026-04-05T14:00:00Z", 1},
  };
  for (const auto& c : cases) {
    json::Value job = a_job().schedule(c.cron, c.zone).seen_since(c.cron, c.zone, c.from).object;
    size_t starts = 0;
    for (Time t = at(c.from); t <= at(c.to); t += Duration(60'000)) {
      Plan p = plan(job, everything(), t);
      for (const auto& action : p.actions) starts += std::holds_alternative<StartRun>(action);
      job.set("status", p.status);
    }
    EXPECT_EQ(starts, c.starts) << c.zone << " " << c.from;
  }
}

TEST(JobPlan, what_cannot_be_scheduled_is_said_in_a_condition) {
  auto bad = a_job().schedule("0 0 30 2 *");
  EXPECT_EQ(reason(plan(bad.object, everything(), at("2026-03-01T10:00:00Z")).status, "Scheduled"),
            "False InvalidSchedule");
  auto input = a_job().schedule("0 * * * *").seen_since("0 * * * *", "UTC", "2026-01-01T00:00:00Z");
  input.with("inputs", R"([{"name":"since","required":true}])");
  Plan p = plan(input.object, everything(), at("2026-03-01T10:00:00Z"));
  EXPECT_EQ(actions(p), Texts{});
  EXPECT_EQ(reason(p.status, "Scheduled"), "False InputRequired");
}

TEST(JobPlan, missing_references_are_conditions_that_heal) {
  auto job = a_job().with("secrets",
                          R"([{"secret":"gh","env":"GH"},{"secret":"two","key":"b","env":"B"}])");
  Observed observed;
  Plan p = plan(job.object, observed, at("2026-03-01T10:00:00Z"));
  EXPECT_EQ(reason(p.status, "SecretsResolved"), "False SecretMissing");
  EXPECT_EQ(reason(p.status, "ModelResolved"), "False ProviderMissing");
  EXPECT_EQ(reason(p.status, "Ready"), "False SecretMissing");
  observed = everything();
  observed.secrets = {{"gh", {"anything"}}, {"two", {"a", "b"}}};
  job.object.set("status", p.status);
  p = plan(job.object, observed, at("2026-03-01T10:01:00Z"));
  EXPECT_EQ(reason(p.status, "Ready"), "True Ready");
  observed.providers["main"] = {"other"};
  EXPECT_EQ(reason(plan(job.object, observed, at("2026-03-01T10:01:00Z")).status, "ModelResolved"),
            "False ModelMissing");
}

TEST(JobPlan, the_key_of_a_secret_is_value_or_the_only_one_or_an_error_that_names_them) {
  std::set<std::string> only{"token"}, both{"a", "value"}, several{"a", "b"};
  EXPECT_EQ(secret_problem({"s", ""}, &only), "");
  EXPECT_EQ(secret_problem({"s", ""}, &both), "");
  EXPECT_EQ(secret_problem({"s", ""}, &several),
            "secret s needs a key in the reference (its keys: a, b)");
  EXPECT_EQ(secret_problem({"s", "c"}, &several), "secret s has no key c (its keys: a, b)");
  EXPECT_EQ(secret_problem({"s", "c"}, nullptr), "secret s does not exist");
}

TEST(JobPlan, deletion_cancels_what_waits_and_lets_active_runs_end) {
  auto job = a_job().deleting();
  Observed observed = everything();
  observed.runs = {a_run("waits", Phase::queued), a_run("works", Phase::running)};
  Time now = at("2026-03-01T10:00:00Z");
  EXPECT_EQ(actions(plan(job.object, observed, now)), Texts{"cancel run waits"});
  observed.runs = {a_run("waits", Phase::cancelled), a_run("works", Phase::running)};
  EXPECT_EQ(actions(plan(job.object, observed, now)), Texts{});
  observed.runs = {a_run("works", Phase::succeeded)};
  EXPECT_EQ(actions(plan(job.object, observed, now)), Texts{"remove finalizer"});
  auto fresh = a_job();
  fresh.object["metadata"].erase("finalizers");
  EXPECT_EQ(actions(plan(fresh.object, observed, now)), Texts{"add finalizer"});
}

TEST(JobPlan, history_keeps_each_class_of_ends_apart) {
  auto job = a_job().with("history", R"({"successful":1,"failed":1})");
  Observed observed = everything();
  observed.runs = {a_run("s1", Phase::succeeded), a_run("f1", Phase::failed),
                   a_run("s2", Phase::succeeded), a_run("t2", Phase::timed_out),
                   a_run("k1", Phase::skipped),   a_run("k2", Phase::skipped),
                   a_run("r", Phase::running)};
  EXPECT_EQ(actions(plan(job.object, observed, at("2026-03-01T10:00:00Z"))),
            (Texts{"remove run s1: history keeps 1 successful runs",
                   "remove run f1: history keeps 1 failed runs",
                   "remove run k1: history keeps 1 skipped runs"}));
  auto all = a_job();
  EXPECT_EQ(actions(plan(all.object, observed, at("2026-03-01T10:00:00Z"))), Texts{})
      << "absent: keep all";
}

TEST(JobPlan, workspace_defaults_fill_what_the_job_leaves_open) {
  apis::WorkspaceSpec workspace;
  workspace.defaults.image = "img";
  workspace.defaults.model = {"p", "n", "u"};
  workspace.defaults.network = apis::NetworkMode::none;
  workspace.defaults.resources.cpus = 2;
  auto spec = apis::job_spec_from(resolve(json::parse(R"({"instruction":"x"})"), workspace));
  EXPECT_EQ(spec.sandbox.image, "img");
  EXPECT_EQ(spec.model, (apis::ModelRef{"p", "n", "u"}));
  EXPECT_EQ(spec.network.mode, apis::NetworkMode::none);
  EXPECT_EQ(spec.sandbox.resources.cpus, 2);
  spec = apis::job_spec_from(resolve(
      json::parse(
          R"({"instruction":"x","sandbox":{"image":"own"},"model":{"provider":"q","name":"r"}})"),
      workspace));
  EXPECT_EQ(spec.sandbox.image, "own");
  EXPECT_EQ(spec.model, (apis::ModelRef{"q", "r", ""}));
}

}  // namespace
}  // namespace umpteenth::controllers::job
