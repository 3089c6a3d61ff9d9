#include "controllers/job/plan.h"

#include <algorithm>
#include <chrono>

#include "apis/object.h"
#include "base/overloaded.h"
#include "controllers/job/references.h"
#include "controllers/job/schedule.h"
#include "controllers/sandbox_engine/plan.h"

namespace umpteenth::controllers::job {
namespace {

bool active(const RunOf& run) { return !apis::terminal(run.phase); }

json::Value last_run(const std::vector<RunOf>& runs) {
  const RunOf* last = nullptr;
  for (const RunOf& run : runs) {
    bool hides =
        last != nullptr && run.phase == apis::Phase::skipped && last->phase != apis::Phase::skipped;
    if (!hides) last = &run;
  }
  if (last == nullptr) return nullptr;
  return json::Value::object({{"name", last->name}, {"phase", apis::to_string(last->phase)}});
}

// Each class of ends keeps its own number: skipped records never push a failure out.
void plan_history(const apis::JobSpec::History& history, const std::vector<RunOf>& runs,
                  std::vector<Action>& actions) {
  struct Class {
    int64_t keep;
    std::vector<const RunOf*> runs;
    const char* what;
  };
  Class succeeded{history.successful, {}, "successful"}, failed{history.failed, {}, "failed"},
      skipped{history.failed, {}, "skipped"};
  for (const RunOf& run : runs) {
    if (active(run)) continue;
    Class& of = run.phase == apis::Phase::succeeded ? succeeded
                : run.phase == apis::Phase::skipped ? skipped
                                                    : failed;
    of.runs.push_back(&run);
  }
  for (const Class* of : {&succeeded, &failed, &skipped}) {
    if (of->keep < 0) continue;
    auto sorted = of->runs;
    std::ranges::sort(sorted, {}, [](const RunOf* r) { return std::tie(r->completed, r->name); });
    for (size_t i = 0; i + static_cast<size_t>(of->keep) < sorted.size(); ++i) {
      actions.push_back(RemoveRun{
          sorted[i]->name, "history keeps " + std::to_string(of->keep) + " " + of->what + " runs"});
    }
  }
}

Plan plan_deletion(const json::Value& job, const Observed& observed) {
  Plan result;
  result.status = job.get("status");
  bool any_active = false;
  for (const RunOf& run : observed.runs) {
    any_active = any_active || active(run);
    if (run.phase == apis::Phase::queued && !run.cancel_requested) {
      result.actions.push_back(CancelRun{run.name});
    }
  }
  if (!any_active && apis::has_finalizer(job, apis::kRunsFinalizer)) {
    result.actions.push_back(RemoveFinalizer{});
  }
  return result;
}

// Why its sandbox cannot be as it is declared; True where nothing is known against it.
apis::Condition sandbox_possible(const apis::JobSpec& spec, const Observed& observed) {
  if (!spec.sandbox.dockerfile.empty()) {
    return {"Ready", "False", "DockerfileUnsupported",
            "spec.sandbox.dockerfile: this umpd builds no images; set spec.sandbox.image", 0};
  }
  std::string engine = spec.sandbox.engine.empty() ? "default" : spec.sandbox.engine;
  auto limit = observed.disk_limits.find(engine);
  if (spec.sandbox.resources.disk_mib > 0 && limit != observed.disk_limits.end() &&
      !limit->second) {
    return {"Ready", "False", "DiskLimitUnsupported", sandbox_engine::disk_limit_refusal(engine),
            0};
  }
  return {"Ready", "True", "Ready", "", 0};
}

apis::Condition ready(const apis::JobSpec& spec, const Observed& observed,
                      const std::vector<apis::Condition>& needed) {
  apis::Condition possible = sandbox_possible(spec, observed);
  if (possible.status != "True") return possible;
  for (const auto& condition : needed) {
    if (condition.status != "True") {
      return {"Ready", "False", condition.reason, condition.message, 0};
    }
  }
  return {"Ready", "True", "Ready", "", 0};
}

}  // namespace

bool skips(apis::OverlapPolicy policy, size_t active) {
  return policy == apis::OverlapPolicy::skip && active > 0;
}

Plan plan(const json::Value& job, const Observed& observed, Time now) {
  if (apis::deleting(job)) return plan_deletion(job, observed);
  Plan result;
  apis::JobSpec spec = apis::job_spec_from(job.get("spec"));
  apis::JobSpec resolved = apis::job_spec_from(resolve(job.get("spec"), observed.workspace));
  const json::Value& old_status = job.get("status");

  if (!apis::has_finalizer(job, apis::kRunsFinalizer)) result.actions.push_back(AddFinalizer{});
  Scheduled scheduled = plan_schedule(old_status, spec, observed.runs, now);
  if (scheduled.due) result.actions.push_back(StartRun{*scheduled.due});
  plan_history(spec.history, observed.runs, result.actions);

  json::Value status = json::Value::object({{"observedGeneration", apis::generation_of(job)}});
  if (!old_status.get("conditions").is_null())
    status.set("conditions", old_status.get("conditions"));
  apis::Condition secrets = secrets_resolved(spec, observed);
  apis::Condition model = model_resolved(resolved, observed);
  for (apis::Condition condition :
       {ready(resolved, observed, {secrets, model}), secrets, model, scheduled.condition}) {
    condition.observed_generation = apis::generation_of(job);
    apis::set_condition(status, condition, now);
  }
  if (!scheduled.memory.is_null()) status.set("schedule", scheduled.memory);
  if (scheduled.next) status.set("nextRunTime", format_time(*scheduled.next));
  std::string last_time =
      scheduled.due ? format_time(*scheduled.due) : old_status.get_string("lastScheduleTime");
  if (!last_time.empty()) status.set("lastScheduleTime", last_time);
  if (json::Value last = last_run(observed.runs); !last.is_null()) status.set("lastRun", last);
  json::Value names = json::Value::array();
  for (const RunOf& run : observed.runs) {
    if (active(run)) names.push_back(run.name);
  }
  status.set("activeRuns", names);
  result.status = std::move(status);
  // Wall clocks are set: look at the schedule at least once an hour.
  if (scheduled.next) {
    result.look_again = std::min<Duration>(*scheduled.next - now, std::chrono::hours(1));
  }
  return result;
}

json::Value resolve(const json::Value& job_spec,
                    const std::optional<apis::WorkspaceSpec>& workspace) {
  json::Value spec = job_spec;
  if (!workspace) return spec;
  const auto& defaults = workspace->defaults;
  auto fill = [](json::Value& object, const char* field, const std::string& value) {
    if (object.get_string(field).empty() && !value.empty()) object.set(field, value);
  };
  json::Value& model = spec["model"];
  if (model.get_string("provider").empty()) {
    fill(model, "provider", defaults.model.provider);
    fill(model, "name", defaults.model.name);
    fill(model, "utility", defaults.model.utility);
  }
  fill(spec["sandbox"], "image", defaults.image);
  if (spec.at_path({"sandbox", "resources"}).is_null()) {
    spec["sandbox"].set("resources", apis::to_json(defaults.resources));
  }
  if (spec.get("network").is_null()) {
    spec.set("network",
             json::Value::object({{"mode", std::string(apis::to_string(defaults.network))}}));
  }
  return spec;
}

std::string to_string(const Action& action) {
  return std::visit(
      Overloaded{[](const AddFinalizer&) { return std::string("add finalizer"); },
                 [](const RemoveFinalizer&) { return std::string("remove finalizer"); },
                 [](const StartRun& a) { return "start run for " + format_time(a.occurrence); },
                 [](const CancelRun& a) { return "cancel run " + a.name; },
                 [](const RemoveRun& a) { return "remove run " + a.name + ": " + a.reason; }},
      action);
}

}  // namespace umpteenth::controllers::job
