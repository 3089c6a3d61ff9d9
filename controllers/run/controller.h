// Run: admission, what becomes of each run, and the sweep of what no run explains.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "controllers/run/drivers.h"
#include "controllers/run/plan.h"
#include "controllers/run/services.h"
#include "controllers/runtime/manager.h"

namespace umpteenth::controllers::run {

inline constexpr char kRuns[] = "run";
inline constexpr char kAdmission[] = "run-admission";
inline constexpr char kSweep[] = "run-sweep";
store::Key admission_key();

class RunController {
 public:
  // max_concurrent: runs.max_concurrent, of all workspaces together.
  RunController(Services& services, Drivers& drivers, int64_t max_concurrent)
      : services_(services), drivers_(drivers), max_concurrent_(max_concurrent) {}

  std::vector<Controller> controllers();  // valid while this object lives

  Outcome reconcile(const store::Key& key);
  Outcome admit();
  Outcome sweep(const std::string& engine_name, const std::stop_token& stop);
  // The plan of one run, for --dry-run and diff.
  json::Value preview(const store::Key& key) const;

 private:
  Situation situation_of(const store::Key& key) const;
  void end(const store::Key& key, const End& action);
  Outcome forget_removed(const store::Key& key);
  void claim(const std::string& uid);
  Limits limits() const;

  Services& services_;
  Drivers& drivers_;
  int64_t max_concurrent_;
  std::mutex mutex_;
  std::map<store::Key, std::vector<std::string>> removed_;  // uids whose rows are to go
};

}  // namespace umpteenth::controllers::run
