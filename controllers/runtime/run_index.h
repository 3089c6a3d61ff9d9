// What the controllers must know of all runs at once, by job and by phase, without parsing every
// run again at each event. Fed by the runs' watch and by the controllers' own commits. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apis/run.h"
#include "base/clock.h"
#include "store/store.h"

namespace umpteenth::controllers {

struct RunEntry {
  store::Key key;
  uint64_t revision = 0;
  uint64_t order = 0;  // the revision at which it was first seen: tells runs of one second apart
  std::string uid, job, trigger, scheduled_for;
  apis::Phase phase = apis::Phase::queued;
  bool cancel_requested = false;
  bool deleting = false;
  Time created, completed;  // completed: only of terminal ones
  std::string overlap;      // of the job spec that it runs with
};

RunEntry run_entry_from(const store::Record& record);

class RunIndex {
 public:
  // What the watch delivers, in order.
  void observe(const store::Event& event);
  // What a commit returned: known at once, before the watch delivers it.
  void committed(const store::RecordPtr& record);

  std::vector<RunEntry> of_job(const std::string& ns,
                               const std::string& job) const;  // oldest first
  std::vector<RunEntry> unfinished() const;                    // oldest first: created, then name
  std::vector<RunEntry> of_workspace(const std::string& ns) const;
  std::optional<RunEntry> find(const store::Key& key) const;
  std::optional<RunEntry> find_by_uid(const std::string& uid) const;
  size_t size() const;

 private:
  void put(RunEntry entry);
  void erase(const store::Key& key, uint64_t up_to);

  mutable std::mutex mutex_;
  std::map<store::Key, RunEntry> runs_;
  std::map<std::pair<std::string, std::string>, std::map<std::string, store::Key>> by_job_;
  std::map<store::Key, bool> unfinished_;
  std::map<std::string, store::Key> by_uid_;
  uint64_t seen_ = 0;
};

}  // namespace umpteenth::controllers
