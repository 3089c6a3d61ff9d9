#include "controllers/retention/controller.h"

#include <algorithm>
#include <chrono>

#include "apis/workspace.h"
#include "base/error.h"
#include "base/log.h"
#include "controllers/runtime/write.h"

namespace umpteenth::controllers::retention {
namespace {

constexpr char kActor[] = "system:controller:retention";
constexpr char kSpace[] = "retention";
constexpr size_t kAtOnce = 200;  // a long backlog leaves room for other writers
constexpr Duration kMore{250};
constexpr Duration kNext{3'600'000};
constexpr std::chrono::hours kEventsKept{24};

// Sorts as the runs ended, so that one text says how far the work has come.
std::string mark_of(const RunEntry& run) { return format_time(run.completed) + " " + run.uid; }

}  // namespace

Controller RetentionController::controller() {
  Controller c;
  c.name = "retention";
  c.sources = {{"workspaces", own_key}};
  c.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };
  return c;
}

Outcome RetentionController::reconcile(const store::Key& workspace) {
  auto record = store_.find(workspace);
  if (!record) return Outcome::done();
  auto spec = apis::workspace_spec_from(record->parse().get("spec"));
  Time now = clock_.now();
  bool more = expire_runs(workspace.name, now - std::chrono::days(spec.retention_days));
  more = expire_events(workspace.name, now - kEventsKept) || more;
  return Outcome::look_again(more ? kMore : kNext);
}

bool RetentionController::expire_runs(const std::string& ns, Time before) {
  std::string done = store_.row_get(kSpace, ns).value_or("");
  std::vector<RunEntry> due;
  for (auto& run : runs_.of_workspace(ns)) {
    if (apis::terminal(run.phase) && run.completed < before && mark_of(run) > done) {
      due.push_back(std::move(run));
    }
  }
  std::ranges::sort(due, {}, mark_of);
  bool more = due.size() > kAtOnce;
  if (more) due.resize(kAtOnce);
  for (const auto& run : due) {
    store_.timeline_remove(run.uid);
    store_.blobs_remove(run.uid);
    auto record = store_.find(run.key);
    if (record && !record->parse().at_path({"status", "artifacts"}).empty()) {
      json::Value status = record->parse().get("status");
      status.set("artifacts", json::Value::array());
      runs_.committed(write_status(store_, *record, status, kActor));
    }
    store_.row_put(kSpace, ns, mark_of(run));
  }
  if (!due.empty()) {
    log::info("timelines and artifacts expired", {{"workspace", ns}, {"runs", due.size()}});
  }
  return more;
}

bool RetentionController::expire_events(const std::string& ns, Time before) {
  store::Commit commit{{}, kActor, "expire events of " + ns};
  std::string limit = format_time(before);
  for (const auto& record :
       store_.list({.kind = "events", .ns = ns, .limit = 0, .next = ""}).items) {
    if (commit.changes.size() == kAtOnce) break;
    if (record->parse().get_string("lastTimestamp") >= limit) continue;
    commit.changes.push_back({store::Verb::remove, record->key, nullptr, record->revision});
  }
  if (commit.changes.empty()) return false;
  size_t count = commit.changes.size();
  store_.commit(commit);
  return count == kAtOnce;
}

}  // namespace umpteenth::controllers::retention
