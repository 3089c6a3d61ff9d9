// Starting runs: the one path for people, API, webhooks, retries and schedules. A job's starts come
// one after the other, so that its overlap policy sees every run before it.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controllers/runtime/events.h"
#include "controllers/runtime/run_index.h"
#include "store/store.h"

namespace umpteenth::controllers::job {

struct StartRequest {
  std::string ns, job, trigger, actor;  // trigger: Manual | Schedule | Webhook | API | Retry
  json::Value input;
  std::string instructions;
  std::string name;    // of the Run; "" = made here
  json::Value labels;  // an object or null: added to the Run's own
  json::Value annotations;
  bool dry_run = false;               // everything checked, nothing stored
  std::optional<Time> scheduled_for;  // Schedule: the occurrence
};

class TriggerService {
 public:
  TriggerService(store::Store& store, RunIndex& runs, Clock& clock, Events& events)
      : store_(store), runs_(runs), clock_(clock), events_(events) {}

  // The Run as stored: Queued, or Skipped by the job's overlap policy. An occurrence that has its
  // run already is that run. Error(not_found), Error(invalid), Error(already_exists),
  // Error(conflict) for a job that is being deleted or a webhook of a suspended one.
  json::Value start(const StartRequest& request);

 private:
  json::Value make_run(const StartRequest& request, const json::Value& job) const;

  store::Store& store_;
  RunIndex& runs_;
  Clock& clock_;
  Events& events_;
  std::mutex mutex_;
};

// The name of an occurrence's run: the same however often it is planned.
std::string occurrence_name(const std::string& job, const std::string& job_uid, Time occurrence);
// Label values end at 63 characters: longer job names are cut and get a hash.
std::string job_label_value(const std::string& job);

}  // namespace umpteenth::controllers::job
