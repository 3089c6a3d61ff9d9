// What a run needs done now. Pure: no I/O, no clock, no log, no random.
//
//   Queued ──► Provisioning ──► Running (──► Verifying) ──► Succeeded | Failed | TimedOut |
//   Cancelled
//     └──────► Skipped | Cancelled
//
// Forward only. A claim (Queued → Provisioning) is a conditional write and is followed by a driver,
// the thread that executes the run. In flight without a driver means that umpd stopped meanwhile:
// such a run is failed, never executed again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "apis/job.h"
#include "apis/run.h"
#include "base/clock.h"
#include "engine/types.h"

namespace umpteenth::controllers::run {

inline constexpr char kInterrupted[] = "interrupted: umpd stopped while this run was executing";
inline constexpr char kCancelledBefore[] = "Cancelled before it started";
inline constexpr char kCancelled[] = "Cancelled";
inline constexpr char kTimedOut[] = "the run exceeded its time limit";

// Writes the run's end; a sandbox that it left behind is removed by the sweep.
struct End {
  apis::Phase phase;
  std::string reason, message;
  bool operator==(const End&) const = default;
};
struct StopDriver {  // the driver ends the run and removes its sandbox
  enum class Why { cancelled, removed } why;
  bool operator==(const StopDriver&) const = default;
};
using Action = std::variant<End, StopDriver>;
std::string to_string(const Action& action);

struct Situation {
  bool exists = true;  // the Run's row
  apis::Phase phase = apis::Phase::queued;
  bool cancel_requested = false;
  bool driven = false;  // a driver of this process has it
  bool job_gone = false;
};
std::vector<Action> plan(const Situation& situation);

// A run as the admission sees it.
struct Waiting {
  std::string uid, ns, job;
  apis::Phase phase = apis::Phase::queued;  // queued, or in flight
  bool cancel_requested = false;
  apis::OverlapPolicy overlap = apis::OverlapPolicy::skip;
};
struct Limits {
  int64_t instance = 3;                      // runs.max_concurrent
  std::map<std::string, int64_t> workspace;  // maxConcurrentRuns; absent = no limit of its own
};
// The uids to claim now. runs: all unfinished ones, oldest first: first come, first served, and a
// run that must wait for its workspace or its job holds up nobody else.
std::vector<std::string> plan_claims(const std::vector<Waiting>& runs, const Limits& limits);

// What of the engine is ours, is a sandbox or its network, and is executed by nobody.
struct Leftovers {
  struct Remove {
    std::string id, name, reason;
    bool operator==(const Remove&) const = default;
  };
  std::vector<Remove> containers, networks;
  bool operator==(const Leftovers&) const = default;
};
// Complete lists of one engine, taken before `driven` was. Without the instance's label nothing is
// touched, and neither are relays, helpers, prepared images, and namespace probes at work.
Leftovers plan_sweep(const std::vector<engine::Container>& containers,
                     const std::vector<engine::Network>& networks, const std::string& instance,
                     const std::set<std::string>& driven);

}  // namespace umpteenth::controllers::run
