#include "server/collector.h"

#include <algorithm>
#include <map>
#include <utility>

#include "apis/kind.h"
#include "apis/lifecycle.h"
#include "apis/object.h"
#include "apis/serve.h"
#include "base/log.h"

namespace umpteenth::server {
namespace {

constexpr char kActor[] = "system:garbage-collector";
constexpr std::chrono::seconds kRetry{2};
constexpr std::chrono::seconds kPruneEvery{60};
constexpr size_t kBatch = 500;

bool mentions_owners(const store::Record& record) {
  return record.json.find("\"ownerReferences\"") != std::string::npos;
}

// Every record of our kinds that has owners, or of one workspace.
std::vector<store::RecordPtr> records_of(const store::Store& store, const std::string& ns) {
  std::vector<store::RecordPtr> all;
  for (const apis::Kind* kind : apis::kinds()) {
    if (!ns.empty() && !kind->namespaced()) continue;
    const store::Page page = store.list({kind->plural, ns, 0, ""});
    all.insert(all.end(), page.items.begin(), page.items.end());
  }
  return all;
}

const json::Value* owners_of(const json::Value& object) {
  const json::Value& owners = object.at_path({"metadata", "ownerReferences"});
  return owners.is_array() ? &owners : nullptr;
}

bool owned_by(const json::Value& object, const std::set<std::string>& uids) {
  const json::Value* owners = owners_of(object);
  if (!owners) return false;
  return std::any_of(owners->items().begin(), owners->items().end(),
                     [&](const json::Value& o) { return uids.contains(o.get_string("uid")); });
}

Time last_seen(const json::Value& event) {
  std::string text = event.get_string("lastTimestamp");
  if (text.empty()) text = event.get("metadata").get_string("creationTimestamp");
  try {
    return parse_time(text);
  } catch (const Error&) {  // an Event without a readable time is as old as can be
    return Time{};
  }
}

}  // namespace

Collector::Collector(store::Store& store, Clock& clock, EventBounds bounds)
    : store_(store), clock_(clock), bounds_(bounds) {}

Collector::~Collector() {
  subscription_.reset();
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Collector::start() {
  subscription_ =
      store_.watch("", store_.revision(), [this](const store::Event& event) { on_event(event); });
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
}

// On the store's thread: only notes what to look at.
void Collector::on_event(const store::Event& event) {
  const bool gone = event.type == store::Event::Type::removed;
  const bool workspace = event.record->key.kind == "workspaces";
  if (!gone && !workspace) return;
  std::lock_guard lock(mutex_);
  if (gone && event.record->key.kind != apis::event_kind().plural) removed_.push_back(event.record);
  if (workspace && !gone && event.record->json.find(kContentFinalizer) != std::string::npos)
    workspaces_.insert(event.record->key.name);
  if (gone && !event.record->key.ns.empty()) workspaces_.insert(event.record->key.ns);
  changed_.notify_all();
}

void Collector::run(std::stop_token stop) {
  bool sweep = true;
  auto next_prune = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto removed = std::exchange(removed_, {});
    const auto workspaces = std::exchange(workspaces_, {});
    lock.unlock();
    const bool done = work(removed, workspaces, sweep);
    if (const auto now = std::chrono::steady_clock::now(); now >= next_prune) {
      next_prune = now + kPruneEvery;
      try {
        prune_events();
      } catch (const std::exception& e) {  // the next round tries again
        log::warn("events were not pruned", {{"error", e.what()}});
      }
    }
    lock.lock();
    sweep = !done;
    const auto wait = done ? kPruneEvery : kRetry;
    if (!stop.stop_requested())
      changed_.wait_for(lock, stop, wait,
                        [&] { return !removed_.empty() || !workspaces_.empty(); });
  }
}

bool Collector::work(std::vector<store::RecordPtr> removed, std::set<std::string> workspaces,
                     bool sweep) {
  bool done = true;
  std::set<std::string> uids;
  for (const auto& record : removed) uids.insert(apis::uid_of(record->parse()));
  if (sweep) {
    for (const auto& record : store_.list({"workspaces", "", 0, ""}).items)
      workspaces.insert(record->key.name);
    done = collect(nullptr);
  } else if (!uids.empty()) {
    done = collect(&uids);
  }
  for (const std::string& name : workspaces) {
    try {
      done &= empty_workspace(name);
    } catch (const std::exception& e) {  // tried again; the others' turn
      log::warn("workspace was not emptied", {{"workspace", name}, {"error", e.what()}});
      done = false;
    }
  }
  return done;
}

// gone_uids null: every object whose owners are all gone. True where nothing is left to retry.
bool Collector::collect(const std::set<std::string>* gone_uids) {
  bool done = true;
  for (const auto& record : records_of(store_, "")) {
    if (!mentions_owners(*record)) continue;
    try {
      collect_record(*record, gone_uids);
    } catch (const std::exception& e) {  // one bad object blocks no other
      log::warn("dependent was not collected",
                {{"object", store::to_string(record->key)}, {"error", e.what()}});
      done = false;
    }
  }
  return done;
}

bool Collector::collect_record(const store::Record& record,
                               const std::set<std::string>* gone_uids) {
  const json::Value object = record.parse();
  if (gone_uids && !owned_by(object, *gone_uids)) return false;
  const json::Value* owners = owners_of(object);
  if (!owners || owners->empty() || apis::deleting(object)) return false;
  for (const json::Value& owner : owners->items()) {
    const bool gone = gone_uids && gone_uids->contains(owner.get_string("uid"));
    if (!gone && owner_lives(owner, record.key.ns)) return false;
  }
  remove(record);
  return true;
}

bool Collector::owner_lives(const json::Value& reference, const std::string& ns) const {
  const apis::Kind* kind = apis::find_kind_by_name(reference.get_string("kind"));
  if (!kind) return true;  // not ours to judge
  const auto owner =
      store_.find({kind->plural, kind->namespaced() ? ns : "", reference.get_string("name")});
  return owner && apis::uid_of(owner->parse()) == reference.get_string("uid");
}

void Collector::remove(const store::Record& record) {
  const json::Value object = record.parse();
  const auto marked = apis::prepare_delete(object, clock_.now());
  if (marked && *marked == object) return;
  const store::Verb verb = marked ? store::Verb::update : store::Verb::remove;
  try {
    store_.commit_one({verb, record.key, marked.value_or(json::Value()), record.revision}, kActor,
                      "delete " + store::to_string(record.key));
  } catch (const Error& e) {
    if (e.code() != Code::not_found) throw;  // gone already: that is what was wanted
  }
}

void Collector::remove_dependents(const std::string& owner_uid) {
  const std::set<std::string> uids = {owner_uid};
  for (const auto& record : records_of(store_, ""))
    if (record->json.find(owner_uid) != std::string::npos && mentions_owners(*record))
      collect_record(*record, &uids);
}

void Collector::orphan_dependents(const std::string& owner_uid, const std::string& actor) {
  for (const auto& record : records_of(store_, "")) {
    if (record->json.find(owner_uid) == std::string::npos || !mentions_owners(*record)) continue;
    json::Value object = record->parse();
    json::Value* owners = object["metadata"].find("ownerReferences");
    if (!owners || !owners->is_array()) continue;
    if (std::erase_if(owners->items(),
                      [&](const json::Value& o) { return o.get_string("uid") == owner_uid; }) == 0)
      continue;
    if (owners->empty()) object["metadata"].erase("ownerReferences");
    store_.commit_one({store::Verb::update, record->key, std::move(object), record->revision},
                      actor, "orphan " + store::to_string(record->key));
  }
}

// True where the workspace is not being deleted, or is gone now.
bool Collector::empty_workspace(const std::string& name) {
  const auto workspace = store_.find({"workspaces", "", name});
  if (!workspace) return true;
  json::Value object = workspace->parse();
  if (!apis::deleting(object) || !apis::has_finalizer(object, kContentFinalizer)) return true;
  const auto content = records_of(store_, name);
  for (const auto& record : content) remove(*record);
  if (!records_of(store_, name).empty()) return true;  // their removal brings us back here
  const store::Page events = store_.list({apis::event_kind().plural, name, 0, ""});
  for (const auto& record : events.items) remove(*record);
  apis::remove_finalizer(object, kContentFinalizer);
  const bool gone = apis::ready_to_remove(object);
  store_.commit_one({gone ? store::Verb::remove : store::Verb::update, workspace->key, object,
                     workspace->revision},
                    kActor, "delete " + store::to_string(workspace->key));
  return true;
}

void Collector::prune_events() {
  struct Seen {
    Time at;
    store::RecordPtr record;
  };
  std::map<std::string, std::vector<Seen>> by_workspace;
  for (const auto& record : store_.list({apis::event_kind().plural, "", 0, ""}).items)
    by_workspace[record->key.ns].push_back({last_seen(record->parse()), record});
  std::vector<store::Change> changes;
  const Time oldest = clock_.now() - bounds_.keep;
  for (auto& [ns, events] : by_workspace) {
    std::sort(events.begin(), events.end(),
              [](const Seen& a, const Seen& b) { return a.at > b.at; });
    for (size_t i = 0; i < events.size(); ++i)
      if (i >= bounds_.per_workspace || events[i].at < oldest)
        changes.push_back({store::Verb::remove, events[i].record->key, {}, {}});
  }
  for (size_t from = 0; from < changes.size(); from += kBatch) {
    const size_t to = std::min(changes.size(), from + kBatch);
    store_.commit({{changes.begin() + static_cast<ptrdiff_t>(from),
                    changes.begin() + static_cast<ptrdiff_t>(to)},
                   kActor,
                   "prune events"});
  }
}

}  // namespace umpteenth::server
