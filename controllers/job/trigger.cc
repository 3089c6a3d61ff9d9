#include "controllers/job/trigger.h"

#include <chrono>

#include "apis/job.h"
#include "apis/job_rules.h"
#include "apis/lifecycle.h"
#include "apis/object.h"
#include "apis/run.h"
#include "apis/workspace.h"
#include "base/crypto.h"
#include "base/error.h"
#include "controllers/job/plan.h"
#include "controllers/runtime/job_events.h"

namespace umpteenth::controllers::job {
namespace {

constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxJobPart = 200;
constexpr char kOverlapText[] = "Skipped because another run of this job was still active: run/";

void check_input(const apis::JobSpec& spec, const json::Value& input) {
  auto causes = apis::missing_inputs(spec, input);
  if (causes.empty()) return;
  std::string list;
  for (const Cause& c : causes) list += (list.empty() ? "" : ", ") + c.field + ": " + c.message;
  throw Error(Code::invalid, list, std::move(causes));
}

std::optional<apis::WorkspaceSpec> workspace_of(const store::Store& store, const std::string& ns) {
  auto record = store.find({"workspaces", "", ns});
  if (!record) return std::nullopt;
  return apis::workspace_spec_from(record->parse().get("spec"));
}

void add_all(json::Value& metadata, const char* field, const json::Value& added) {
  if (!added.is_object()) return;
  for (const auto& [key, value] : added.members()) metadata[field].set(key, value);
}

}  // namespace

std::string occurrence_name(const std::string& job, const std::string& job_uid, Time occurrence) {
  auto minutes = std::chrono::duration_cast<std::chrono::minutes>(occurrence.time_since_epoch());
  return job.substr(0, kMaxJobPart) + "-" + std::to_string(minutes.count()) + "-" +
         crypto::hex(crypto::sha256(job_uid)).substr(0, 6);
}

std::string job_label_value(const std::string& job) {
  if (job.size() <= kMaxLabel) return job;
  return job.substr(0, kMaxLabel - 9) + "-" + crypto::hex(crypto::sha256(job)).substr(0, 8);
}

json::Value TriggerService::make_run(const StartRequest& request, const json::Value& job) const {
  apis::RunSpec spec;
  spec.job = request.job;
  spec.job_generation = apis::generation_of(job);
  spec.job_spec = resolve(job.get("spec"), workspace_of(store_, request.ns));
  spec.trigger = request.trigger;
  spec.input = request.input.is_null() ? json::Value::object() : request.input;
  spec.instructions = request.instructions;
  std::string name = request.name;
  if (request.scheduled_for) {
    spec.scheduled_for = format_time(*request.scheduled_for);
    name = occurrence_name(request.job, apis::uid_of(job), *request.scheduled_for);
  }
  if (name.empty()) name = apis::make_run_name(request.job, clock_.now());
  json::Value run = apis::make_object(apis::run_kind(), request.ns, name, apis::to_json(spec));
  json::Value& metadata = run["metadata"];
  add_all(metadata, "labels", request.labels);
  add_all(metadata, "annotations", request.annotations);
  metadata["labels"].set(apis::kJobLabel, job_label_value(request.job));
  metadata["annotations"].set(apis::kRequestedBy, request.actor);
  apis::WriteOptions options;
  options.field_validation = apis::FieldValidation::strict;
  options.field_manager = "umpd";
  options.now = clock_.now();
  return apis::prepare_create(apis::run_kind(), std::move(run), options).object;
}

json::Value TriggerService::start(const StartRequest& request) {
  std::lock_guard lock(mutex_);
  auto record = store_.find({"jobs", request.ns, request.job});
  if (!record) {
    throw Error(Code::not_found, "jobs.umpteenth.dev \"" + request.job + "\" not found");
  }
  json::Value job = record->parse();
  std::string named = "job " + request.ns + "/" + request.job;
  if (apis::deleting(job)) throw Error(Code::conflict, named + " is being deleted");
  apis::JobSpec spec = apis::job_spec_from(job.get("spec"));
  if (spec.suspend && request.trigger == "Webhook") {
    throw Error(Code::conflict, named + " is suspended: its webhook starts no run");
  }
  check_input(spec, request.input);
  json::Value run = make_run(request, job);

  // The index may be a moment behind: a run that has just ended is active no more.
  std::vector<std::string> active;
  for (const RunEntry& entry : runs_.of_job(request.ns, request.job)) {
    if (apis::terminal(entry.phase)) continue;
    auto now = store_.find(entry.key);
    if (now && !apis::terminal(run_entry_from(*now).phase)) active.push_back(entry.key.name);
  }
  apis::RunStatus status;
  if (skips(spec.schedule.overlap, active.size())) {
    status.phase = apis::Phase::skipped;
    status.reason = "Overlap";
    status.message = kOverlapText + active.front();
    status.completion_time = format_time(clock_.now());
  }
  run.set("status", apis::to_json(status));
  if (request.dry_run) return run;

  store::Key key{"runs", request.ns, apis::name_of(run)};
  try {
    auto stored = store_.commit_one({store::Verb::create, key, run, std::nullopt}, request.actor,
                                    "create " + store::to_string(key));
    runs_.committed(stored);
    if (status.phase == apis::Phase::skipped)
      tell_job(events_, store_, {key, request.job, status.phase, status.message});
    return stored->parse();
  } catch (const Error& e) {  // this occurrence was started before: that is what was wanted
    if (e.code() != Code::already_exists || !request.scheduled_for) throw;
    auto there = store_.find(key);
    if (!there) throw;
    return there->parse();
  }
}

}  // namespace umpteenth::controllers::job
