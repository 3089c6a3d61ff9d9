// Retention: timelines and artifacts go at a workspace's retention.days after the run's end; the
// run's record stays. Old Events go after a day.
#pragma once

#include "controllers/runtime/manager.h"
#include "controllers/runtime/run_index.h"

namespace umpteenth::controllers::retention {

class RetentionController {
 public:
  RetentionController(store::Store& store, Clock& clock, RunIndex& runs)
      : store_(store), clock_(clock), runs_(runs) {}

  Controller controller();  // valid while this object lives
  Outcome reconcile(const store::Key& workspace);

 private:
  bool expire_runs(const std::string& ns, Time before);  // true when there are more
  bool expire_events(const std::string& ns, Time before);

  store::Store& store_;
  Clock& clock_;
  RunIndex& runs_;
};

}  // namespace umpteenth::controllers::retention
