// ModelProvider: says whether a run could use it; heals when its Secret appears.
#pragma once

#include "controllers/runtime/manager.h"

namespace umpteenth::controllers::model_provider {

class ModelProviderController {
 public:
  ModelProviderController(store::Store& store, Clock& clock) : store_(store), clock_(clock) {}

  Controller controller();  // valid while this object lives
  Outcome reconcile(const store::Key& key);

 private:
  store::Store& store_;
  Clock& clock_;
};

}  // namespace umpteenth::controllers::model_provider
