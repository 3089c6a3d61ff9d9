// Job: schedules, history, deletion, status. Thin: observe, plan, apply, one status write.
#pragma once

#include "controllers/job/plan.h"
#include "controllers/job/trigger.h"
#include "controllers/runtime/fight.h"
#include "controllers/runtime/manager.h"
#include "controllers/runtime/run_index.h"

namespace umpteenth::controllers::job {

class JobController {
 public:
  JobController(store::Store& store, Clock& clock, RunIndex& runs, TriggerService& trigger)
      : store_(store), clock_(clock), runs_(runs), trigger_(trigger) {}

  Controller controller();  // valid while this object lives
  Outcome reconcile(const store::Key& key);
  // The actions and the status it would write now, for --dry-run and diff.
  json::Value preview(const store::Key& key) const;

 private:
  Observed observe(const store::Key& key, const json::Value& job) const;
  store::RecordPtr apply(const store::Key& key, store::RecordPtr record, const Action& action);
  void cancel_run(const store::Key& key);
  void remove_run(const store::Key& key);
  std::vector<store::Key> jobs_in(const std::string& ns) const;

  store::Store& store_;
  Clock& clock_;
  RunIndex& runs_;
  TriggerService& trigger_;
  FightDetector fights_;
};

}  // namespace umpteenth::controllers::job
