#include "controllers/run/controller.h"

#include "apis/object.h"
#include "base/error.h"
#include "base/log.h"
#include "controllers/run/status_write.h"
#include "controllers/runtime/job_events.h"
#include "controllers/runtime/write.h"
#include "runs/live_run.h"

namespace umpteenth::controllers::run {
namespace {

constexpr Duration kSweepEvery{300'000};
constexpr Duration kDriverEnds{500};
constexpr Duration kLookAgain{60'000};

apis::OverlapPolicy overlap_from(const std::string& text) {
  if (text == apis::to_string(apis::OverlapPolicy::queue)) return apis::OverlapPolicy::queue;
  if (text == apis::to_string(apis::OverlapPolicy::parallel)) return apis::OverlapPolicy::parallel;
  return apis::OverlapPolicy::skip;
}

}  // namespace

store::Key admission_key() { return {"runs", "", "*"}; }

std::vector<Controller> RunController::controllers() {
  auto observed = [this](const store::Event& event) {
    services_.index.observe(event);
    if (event.type != store::Event::Type::removed) return;
    std::lock_guard lock(mutex_);
    removed_[event.record->key].push_back(apis::uid_of(event.record->parse()));
  };
  auto runs_of_job = [this](const store::Event& event) {
    std::vector<store::Key> keys;
    if (event.type != store::Event::Type::removed) return keys;
    const auto& key = event.record->key;
    for (const auto& run : services_.index.of_job(key.ns, key.name)) {
      if (!apis::terminal(run.phase)) keys.push_back(run.key);
    }
    return keys;
  };
  Controller each;
  each.name = kRuns;
  each.workers = 2;
  each.sources = {{"runs",
                   [observed](const store::Event& event) {
                     observed(event);
                     return own_key(event);
                   }},
                  {"jobs", runs_of_job}};
  each.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };

  auto admission = [](const store::Event&) { return std::vector<store::Key>{admission_key()}; };
  Controller admit_all;
  admit_all.name = kAdmission;
  admit_all.sources = {{"runs",
                        [this, admission](const store::Event& event) {
                          services_.index.observe(event);
                          return admission(event);
                        }},
                       {"workspaces", admission}};
  admit_all.reconcile = [this](const store::Key&, const std::stop_token&) { return admit(); };

  Controller sweeps;
  sweeps.name = kSweep;
  sweeps.sources = {{"sandboxengines", own_key}};
  sweeps.reconcile = [this](const store::Key& key, const std::stop_token& stop) {
    return sweep(key.name, stop);
  };
  return {each, admit_all, sweeps};
}

Situation RunController::situation_of(const store::Key& key) const {
  Situation s;
  auto record = services_.store.find(key);
  if (!record) {
    s.exists = false;
    return s;
  }
  RunEntry entry = run_entry_from(*record);
  s.phase = entry.phase;
  s.cancel_requested = entry.cancel_requested;
  s.driven = drivers_.driving(entry.uid);
  s.job_gone = !services_.store.find({"jobs", key.ns, entry.job});
  return s;
}

json::Value RunController::preview(const store::Key& key) const {
  json::Value actions = json::Value::array();
  for (const auto& action : plan(situation_of(key))) actions.push_back(to_string(action));
  return json::Value::object({{"actions", actions}});
}

Outcome RunController::reconcile(const store::Key& key) {
  Outcome outcome = forget_removed(key);
  for (const auto& action : plan(situation_of(key))) {
    log::info("run plan", {{"run", store::to_string(key)}, {"plan", to_string(action)}});
    if (const auto* ends = std::get_if<End>(&action)) {
      end(key, *ends);
    } else if (auto record = services_.store.find(key)) {
      drivers_.stop(apis::uid_of(record->parse()), Stop::cancelled);
    }
  }
  return outcome;
}

void RunController::end(const store::Key& key, const End& action) {
  auto record = services_.store.find(key);
  if (!record) return;
  json::Value run = record->parse();
  auto stored =
      advance(services_.store, services_.index, key, action.phase, [&](apis::RunStatus& status) {
        status.reason = action.reason;
        status.message = action.message;
        status.completion_time = format_time(services_.clock.now());
      });
  if (!stored) return;
  const bool cancelled = action.phase == apis::Phase::cancelled;
  const std::string told = cancelled ? with_canceller(action.message, record) : action.message;
  runs::RunInfo info;
  info.ns = key.ns;
  info.name = key.name;
  info.uid = apis::uid_of(run);
  info.job = run.get("spec").get_string("job");
  runs::LiveRun(info, services_.store, services_.clock)
      .record("run.status", json::Value::object({{"phase", apis::to_string(action.phase)},
                                                 {"reason", action.reason},
                                                 {"message", told}}));
  services_.events.warning(stored->parse(), action.reason, told);
  tell_job(services_.events, services_.store, {key, info.job, action.phase, told});
}

// A Run's row is gone: its driver ends, then what was kept under its uid goes too.
Outcome RunController::forget_removed(const store::Key& key) {
  std::vector<std::string> uids;
  {
    std::lock_guard lock(mutex_);
    auto found = removed_.find(key);
    if (found == removed_.end()) return Outcome::done();
    uids = found->second;
  }
  bool waiting = false;
  for (const auto& uid : uids) {
    if (drivers_.driving(uid)) {
      drivers_.stop(uid, Stop::removed);
      waiting = true;
      continue;
    }
    services_.store.timeline_remove(uid);
    services_.store.blobs_remove(uid);
    std::lock_guard lock(mutex_);
    std::erase(removed_[key], uid);
    if (removed_[key].empty()) removed_.erase(key);
  }
  return waiting ? Outcome::look_again(kDriverEnds) : Outcome::done();
}

Limits RunController::limits() const {
  Limits limits;
  limits.instance = max_concurrent_;
  store::Query query{.kind = "workspaces", .ns = "", .limit = 0, .next = ""};
  for (const auto& record : services_.store.list(query).items) {
    auto spec = apis::workspace_spec_from(record->parse().get("spec"));
    limits.workspace[record->key.name] = spec.max_concurrent_runs;
  }
  return limits;
}

Outcome RunController::admit() {
  std::vector<Waiting> runs;
  for (const auto& entry : services_.index.unfinished()) {
    Waiting waiting{entry.uid,   entry.key.ns,           entry.job,
                    entry.phase, entry.cancel_requested, overlap_from(entry.overlap)};
    runs.push_back(std::move(waiting));
  }
  for (const auto& uid : plan_claims(runs, limits())) claim(uid);
  return runs.empty() ? Outcome::done() : Outcome::look_again(kLookAgain);
}

void RunController::claim(const std::string& uid) {
  auto entry = services_.index.find_by_uid(uid);
  auto record = entry ? services_.store.find(entry->key) : nullptr;
  if (!record) return;
  json::Value run = record->parse();
  auto status = apis::run_status_from(run.get("status"));
  bool waits = apis::uid_of(run) == uid && status.phase == apis::Phase::queued &&
               !run.get("spec").get_bool("cancelRequested");
  if (!waits || !drivers_.reserve(uid)) return;
  Time now = services_.clock.now();
  status.phase = apis::Phase::provisioning;
  status.start_time = format_time(now);
  status.queue_ms = std::max<int64_t>(0, (now - apis::created_at(run)).count());
  run.set("status", apis::to_json(status));
  store::RecordPtr claimed;
  try {
    claimed = write_object(services_.store, *record, std::move(run), kRunActor,
                           "claim run " + entry->key.name);
  } catch (const Error& e) {  // somebody was faster: it is theirs, or cancelled
    drivers_.release(uid);
    if (e.code() == Code::conflict || e.code() == Code::not_found) return;
    throw;
  }
  services_.index.committed(claimed);
  log::info("run claimed", {{"run", store::to_string(entry->key)}});
  try {
    drivers_.start(*claimed);
  } catch (const std::exception& e) {  // claimed and never begun: it must end, not wait forever
    drivers_.release(uid);
    end(entry->key, {apis::Phase::failed, "Refused",
                     std::string("the run cannot be executed: ") + log::clip(e.what())});
  }
}

Outcome RunController::sweep(const std::string& engine_name, const std::stop_token& stop) {
  auto handle = services_.engines.find(engine_name);
  if (!handle) return Outcome::look_again(kDriverEnds);  // its own controller makes the client
  engine::Engine& engine = handle->engine();
  engine::Labels ours{{engine::kLabelInstance, services_.instance}};
  auto containers = engine.list_containers(ours);
  auto networks = engine.list_networks(ours);
  auto leftovers = plan_sweep(containers, networks, services_.instance, drivers_.driven());
  for (const auto& left : leftovers.containers) {
    log::info("removing a leftover container", {{"name", left.name}, {"reason", left.reason}});
    engine.remove_container(left.id);
  }
  for (const auto& left : leftovers.networks) {
    log::info("removing a leftover network", {{"name", left.name}, {"reason", left.reason}});
    handle->parts().remove_network(left.id);
  }
  if (handle->parts().collect_garbage) {
    for (const auto& what : handle->parts().collect_garbage(stop)) {
      log::info("removed an unused image", {{"image", what}});
    }
  }
  return Outcome::look_again(kSweepEvery);
}

}  // namespace umpteenth::controllers::run
