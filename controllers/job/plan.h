// What a job needs done now. Pure: no I/O, no clock, no log, no random.
//
//   schedule due ──────────────► StartRun (one for all missed occurrences)
//   deleting ──► CancelRun for each queued run ──► active ones end ──► RemoveFinalizer
//   history beyond its limits ─► RemoveRun
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "apis/job.h"
#include "apis/run.h"
#include "apis/workspace.h"
#include "base/clock.h"
#include "base/json.h"

namespace umpteenth::controllers::job {

struct RunOf {  // one run of the job
  std::string name;
  apis::Phase phase = apis::Phase::queued;
  bool cancel_requested = false;
  std::string scheduled_for;
  Time created, completed;
};

struct Observed {
  std::vector<RunOf> runs;                                 // oldest first
  std::map<std::string, std::set<std::string>> secrets;    // those that exist: name → keys
  std::map<std::string, std::set<std::string>> providers;  // those visible: name → model names
  std::map<std::string, std::string> provider_problems;    // of those that say they are not Ready
  std::map<std::string, bool> disk_limits;  // whether a SandboxEngine can limit disk space; only
                                            // of engines that have said so
  std::optional<apis::WorkspaceSpec> workspace;
};

struct AddFinalizer {
  bool operator==(const AddFinalizer&) const = default;
};
struct RemoveFinalizer {
  bool operator==(const RemoveFinalizer&) const = default;
};
struct StartRun {
  Time occurrence;
  bool operator==(const StartRun&) const = default;
};
struct CancelRun {
  std::string name;
  bool operator==(const CancelRun&) const = default;
};
struct RemoveRun {
  std::string name, reason;
  bool operator==(const RemoveRun&) const = default;
};
using Action = std::variant<AddFinalizer, RemoveFinalizer, StartRun, CancelRun, RemoveRun>;
std::string to_string(const Action& action);

struct Plan {
  std::vector<Action> actions;
  json::Value status;  // of the Job, as it is once the actions are done
  std::optional<Duration> look_again;
};

// job: the whole object. The status that it carries is the plan's memory of the schedule.
Plan plan(const json::Value& job, const Observed& observed, Time now);

// Whether a start while `active` runs are not finished becomes a Skipped record.
bool skips(apis::OverlapPolicy policy, size_t active);

// The latest occurrence in (after, now]: however many were missed, one is made up for.
std::optional<Time> latest_due(const std::string& cron, const std::string& zone, Time after,
                               Time now);

// The job's spec with the workspace's defaults where the job leaves them open.
json::Value resolve(const json::Value& job_spec,
                    const std::optional<apis::WorkspaceSpec>& workspace);

}  // namespace umpteenth::controllers::job
