#include "controllers/runtime/job_events.h"

namespace umpteenth::controllers {
namespace {

struct Wording {
  std::string reason, verb;
  bool warning = false;
};

Wording wording(apis::Phase phase) {
  switch (phase) {
    case apis::Phase::succeeded:
      return {"RunSucceeded", "succeeded", false};
    case apis::Phase::failed:
      return {"RunFailed", "failed", true};
    case apis::Phase::timed_out:
      return {"RunTimedOut", "timed out", true};
    case apis::Phase::cancelled:
      return {"RunCancelled", "was cancelled", false};
    case apis::Phase::skipped:
      return {"RunSkipped", "was skipped", false};
    default:
      return {"RunStarted", "started", false};
  }
}

}  // namespace

void tell_job(Events& events, const store::Store& store, const RunTold& told) {
  auto job = store.find({"jobs", told.run.ns, told.job});
  if (!job) return;
  Wording words = wording(told.phase);
  std::string text = "run " + told.run.name + " " + words.verb;
  // `Cancelled (by admin)`, `Skipped because …`: the verb has said the first word already.
  std::string phase(apis::to_string(told.phase));
  if (told.message.starts_with(phase + " "))
    text += told.message.substr(phase.size());
  else if (!told.message.empty() && told.message != phase)
    text += ": " + told.message;
  events.latest(job->parse(), words.warning ? "Warning" : "Normal", words.reason, text);
}

}  // namespace umpteenth::controllers
