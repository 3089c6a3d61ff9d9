// Workspace: counts what is in it. A burst of changes is counted once.
#pragma once

#include "controllers/run/spend.h"
#include "controllers/runtime/manager.h"

namespace umpteenth::controllers::workspace {

class WorkspaceController {
 public:
  WorkspaceController(store::Store& store, Clock& clock, const run::Spend& spend)
      : store_(store), clock_(clock), spend_(spend) {}

  Controller controller();  // valid while this object lives
  Outcome reconcile(const store::Key& key);

 private:
  store::Store& store_;
  Clock& clock_;
  const run::Spend& spend_;
};

}  // namespace umpteenth::controllers::workspace
