// What a Job's Events say of its runs: one Event for each thing that can happen to a run, with how
// often it did and which run was the last.
#pragma once

#include <string>

#include "apis/run.h"
#include "controllers/runtime/events.h"

namespace umpteenth::controllers {

struct RunTold {
  store::Key run;
  std::string job;
  apis::Phase phase;    // Provisioning: it was started; else how it ended
  std::string message;  // why it ended so
};
// Never throws; a job that is gone is told nothing.
void tell_job(Events& events, const store::Store& store, const RunTold& told);

}  // namespace umpteenth::controllers
