#include "controllers/runtime/run_index.h"

#include <algorithm>

#include "apis/object.h"
#include "base/error.h"

namespace umpteenth::controllers {
namespace {

void sort_by_age(std::vector<RunEntry>& runs) {
  std::ranges::sort(runs, [](const RunEntry& a, const RunEntry& b) {
    return std::tie(a.created, a.order, a.key) < std::tie(b.created, b.order, b.key);
  });
}

Time time_or(const std::string& text, Time otherwise) {
  if (text.empty()) return otherwise;
  try {
    return parse_time(text);
  } catch (const Error&) {  // written by nobody of ours; the index must hold the run anyway
    return otherwise;
  }
}

}  // namespace

RunEntry run_entry_from(const store::Record& record) {
  json::Value object = record.parse();
  const json::Value& spec = object.get("spec");
  const json::Value& status = object.get("status");
  RunEntry entry;
  entry.key = record.key;
  entry.revision = entry.order = record.revision;
  entry.uid = apis::uid_of(object);
  entry.job = spec.get_string("job");
  entry.trigger = spec.get_string("trigger");
  entry.scheduled_for = spec.get_string("scheduledFor");
  entry.cancel_requested = spec.get_bool("cancelRequested");
  entry.deleting = apis::deleting(object);
  entry.phase = apis::phase_from(status.get_string("phase"));
  entry.created = time_or(object.get("metadata").get_string("creationTimestamp"), Time{});
  entry.completed = time_or(status.get_string("completionTime"), entry.created);
  entry.overlap = spec.at_path({"jobSpec", "schedule"}).get_string("overlapPolicy", "Skip");
  return entry;
}

void RunIndex::observe(const store::Event& event) {
  std::optional<RunEntry> entry;
  if (event.type != store::Event::Type::removed) entry = run_entry_from(*event.record);
  std::lock_guard lock(mutex_);
  seen_ = std::max(seen_, event.record->revision);
  if (entry) {
    put(std::move(*entry));
  } else {
    erase(event.record->key, event.record->revision);
  }
}

void RunIndex::committed(const store::RecordPtr& record) {
  if (!record) return;
  RunEntry entry = run_entry_from(*record);
  std::lock_guard lock(mutex_);
  // The watch is past this revision and does not know the run: it has been removed meanwhile.
  if (!runs_.contains(entry.key) && entry.revision <= seen_) return;
  put(std::move(entry));
}

void RunIndex::put(RunEntry entry) {
  auto known = runs_.find(entry.key);
  if (known != runs_.end()) {
    if (known->second.revision > entry.revision) return;
    entry.order = known->second.order;
    erase(entry.key, entry.revision);
  }
  by_job_[{entry.key.ns, entry.job}][entry.key.name] = entry.key;
  by_uid_[entry.uid] = entry.key;
  if (!apis::terminal(entry.phase)) unfinished_[entry.key] = true;
  store::Key key = entry.key;
  runs_.emplace(std::move(key), std::move(entry));
}

void RunIndex::erase(const store::Key& key, uint64_t up_to) {
  auto known = runs_.find(key);
  if (known == runs_.end() || known->second.revision > up_to) return;
  auto job = by_job_.find({key.ns, known->second.job});
  job->second.erase(key.name);
  if (job->second.empty()) by_job_.erase(job);
  by_uid_.erase(known->second.uid);
  unfinished_.erase(key);
  runs_.erase(known);
}

std::vector<RunEntry> RunIndex::of_job(const std::string& ns, const std::string& job) const {
  std::vector<RunEntry> found;
  std::lock_guard lock(mutex_);
  auto names = by_job_.find({ns, job});
  if (names == by_job_.end()) return found;
  for (const auto& [name, key] : names->second) found.push_back(runs_.at(key));
  sort_by_age(found);
  return found;
}

std::vector<RunEntry> RunIndex::unfinished() const {
  std::vector<RunEntry> found;
  std::lock_guard lock(mutex_);
  for (const auto& [key, _] : unfinished_) found.push_back(runs_.at(key));
  sort_by_age(found);
  return found;
}

std::vector<RunEntry> RunIndex::of_workspace(const std::string& ns) const {
  std::vector<RunEntry> found;
  std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : runs_) {
    if (key.ns == ns) found.push_back(entry);
  }
  sort_by_age(found);
  return found;
}

std::optional<RunEntry> RunIndex::find(const store::Key& key) const {
  std::lock_guard lock(mutex_);
  auto found = runs_.find(key);
  return found == runs_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<RunEntry> RunIndex::find_by_uid(const std::string& uid) const {
  std::lock_guard lock(mutex_);
  auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? std::nullopt : std::optional(runs_.at(found->second));
}

size_t RunIndex::size() const {
  std::lock_guard lock(mutex_);
  return runs_.size();
}

}  // namespace umpteenth::controllers
