#include "controllers/job/controller.h"

#include "apis/model_provider.h"
#include "apis/object.h"
#include "base/error.h"
#include "base/log.h"
#include "controllers/runtime/secret_keys.h"
#include "controllers/runtime/write.h"

namespace umpteenth::controllers::job {
namespace {

constexpr char kActor[] = "system:controller:job";

void add_providers(const store::Store& store, const std::string& ns, Observed& observed) {
  for (const auto& record :
       store.list({.kind = "modelproviders", .ns = ns, .limit = 0, .next = ""}).items) {
    json::Value object = record->parse();
    auto spec = apis::model_provider_spec_from(object.get("spec"));
    std::set<std::string> models;
    for (const auto& model : spec.models) models.insert(model.name);
    bool first = observed.providers.emplace(record->key.name, std::move(models)).second;
    if (!first) continue;  // the one found before wins
    auto ready = apis::find_condition(object, "Ready");
    if (ready && ready->status == "False") {
      observed.provider_problems.emplace(record->key.name, ready->message);
    }
  }
}

const json::Value& disk_limit_of(const json::Value& engine) {
  return engine.at_path({"status", "capabilities", "diskLimit"});
}

void add_disk_limits(const store::Store& store, Observed& observed) {
  for (const auto& record :
       store.list({.kind = "sandboxengines", .ns = "", .limit = 0, .next = ""}).items) {
    json::Value engine = record->parse();
    const json::Value& limits = disk_limit_of(engine);
    if (limits.is_bool()) observed.disk_limits.emplace(record->key.name, limits.as_bool());
  }
}

// An engine's status changes with every run; what it can do hardly ever.
bool same_disk_limit(const store::Event& event) {
  return event.type == store::Event::Type::modified && event.previous &&
         disk_limit_of(event.previous->parse()) == disk_limit_of(event.record->parse());
}

std::string text_of(const std::vector<Action>& actions) {
  std::string text;
  for (const auto& action : actions) text += (text.empty() ? "" : "; ") + to_string(action);
  return text;
}

}  // namespace

Controller JobController::controller() {
  Controller c;
  c.name = "job";
  c.workers = 2;
  c.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };
  auto all_of_workspace = [this](const store::Event& event) {
    const auto& key = event.record->key;
    if (key.kind == "workspaces") return jobs_in(key.name);
    return jobs_in(key.ns == apis::kSystemWorkspace ? "" : key.ns);
  };
  auto job_of_run = [this](const store::Event& event) -> std::vector<store::Key> {
    runs_.observe(event);
    std::string job = event.record->parse().get("spec").get_string("job");
    return {{"jobs", event.record->key.ns, job}};
  };
  c.sources = {{"jobs", own_key},
               {"runs", job_of_run},
               {"secrets", all_of_workspace},
               {"modelproviders", all_of_workspace},
               {"workspaces", all_of_workspace},
               {"sandboxengines", [this](const store::Event& event) {
                  return same_disk_limit(event) ? std::vector<store::Key>{} : jobs_in("");
                }}};
  return c;
}

std::vector<store::Key> JobController::jobs_in(const std::string& ns) const {
  std::vector<store::Key> keys;
  for (const auto& record : store_.list({.kind = "jobs", .ns = ns, .limit = 0, .next = ""}).items) {
    keys.push_back(record->key);
  }
  return keys;
}

Observed JobController::observe(const store::Key& key, const json::Value& job) const {
  Observed observed;
  for (const RunEntry& run : runs_.of_job(key.ns, key.name)) {
    observed.runs.push_back({run.key.name, run.phase, run.cancel_requested, run.scheduled_for,
                             run.created, run.completed});
  }
  for (const auto& mapping : apis::job_spec_from(job.get("spec")).secrets) {
    if (auto keys = find_secret_keys(store_, key.ns, mapping.ref.secret)) {
      observed.secrets.emplace(mapping.ref.secret, std::move(*keys));
    }
  }
  add_disk_limits(store_, observed);
  add_providers(store_, key.ns, observed);
  add_providers(store_, apis::kSystemWorkspace, observed);
  if (auto workspace = store_.find({"workspaces", "", key.ns})) {
    observed.workspace = apis::workspace_spec_from(workspace->parse().get("spec"));
  }
  return observed;
}

json::Value JobController::preview(const store::Key& key) const {
  auto record = store_.find(key);
  if (!record) throw Error(Code::not_found, "jobs.umpteenth.dev \"" + key.name + "\" not found");
  json::Value job = record->parse();
  Plan wanted = plan(job, observe(key, job), clock_.now());
  json::Value actions = json::Value::array();
  for (const auto& action : wanted.actions) actions.push_back(to_string(action));
  return json::Value::object({{"actions", actions}, {"status", wanted.status}});
}

Outcome JobController::reconcile(const store::Key& key) {
  auto record = store_.find(key);
  if (!record) {
    fights_.forget(key);
    return Outcome::done();
  }
  json::Value job = record->parse();
  Plan wanted = plan(job, observe(key, job), clock_.now());
  std::string text = text_of(wanted.actions);
  if (Duration wait = fights_.note(key, text); wait > Duration::zero()) {
    log::warn("the same plan comes again and again",
              {{"job", store::to_string(key)}, {"plan", text}});
    return Outcome::look_again(wait);
  }
  if (!text.empty()) log::info("job plan", {{"job", store::to_string(key)}, {"plan", text}});
  for (const auto& action : wanted.actions) {
    record = apply(key, record, action);
    if (!record) return Outcome::done();  // the finalizer was the last: the job is gone
  }
  write_status(store_, *record, wanted.status, kActor);
  return wanted.look_again ? Outcome::look_again(*wanted.look_again) : Outcome::done();
}

store::RecordPtr JobController::apply(const store::Key& key, store::RecordPtr record,
                                      const Action& action) {
  json::Value job = record->parse();
  if (std::holds_alternative<AddFinalizer>(action)) {
    apis::add_finalizer(job, apis::kRunsFinalizer);
    return write_object(store_, *record, job, kActor, "add finalizer to " + store::to_string(key));
  }
  if (std::holds_alternative<RemoveFinalizer>(action)) {
    apis::remove_finalizer(job, apis::kRunsFinalizer);
    bool last = job.at_path({"metadata", "finalizers"}).empty();
    std::string message = "remove " + store::to_string(key);
    if (!last) return write_object(store_, *record, job, kActor, message);
    store_.commit_one({store::Verb::remove, key, nullptr, record->revision}, kActor, message);
    return nullptr;
  }
  if (const auto* start = std::get_if<StartRun>(&action)) {
    StartRequest request;
    request.ns = key.ns;
    request.job = key.name;
    request.trigger = "Schedule";
    request.actor = kActor;
    request.scheduled_for = start->occurrence;
    trigger_.start(request);
  } else if (const auto* cancel = std::get_if<CancelRun>(&action)) {
    cancel_run({"runs", key.ns, cancel->name});
  } else if (const auto* remove = std::get_if<RemoveRun>(&action)) {
    remove_run({"runs", key.ns, remove->name});
  }
  return record;
}

void JobController::cancel_run(const store::Key& key) {
  auto record = store_.find(key);
  if (!record) return;
  json::Value run = record->parse();
  run["spec"].set("cancelRequested", true);
  run["metadata"]["annotations"].set(apis::kCancelledBy, kActor);
  runs_.committed(write_object(store_, *record, run, kActor, "cancel " + store::to_string(key)));
}

void JobController::remove_run(const store::Key& key) {
  auto record = store_.find(key);
  if (!record) return;
  std::string uid = apis::uid_of(record->parse());
  store_.commit_one({store::Verb::remove, key, nullptr, record->revision}, kActor,
                    "remove " + store::to_string(key));
  store_.timeline_remove(uid);
  store_.blobs_remove(uid);
}

}  // namespace umpteenth::controllers::job
