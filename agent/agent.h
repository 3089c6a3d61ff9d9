// The turn loop: asks the model, carries out its tool calls in the sandbox, until it calls finish
// or a budget, the deadline or a cancel ends it.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "models/model_client.h"
#include "runs/live_run.h"
#include "runs/sandbox_io.h"

namespace umpteenth::agent {

struct Params {
  runs::LiveRun& run;
  runs::SandboxIO& sandbox;
  models::Model model;
  Clock& clock;
  std::string instruction;
  std::string trigger;  // Manual | Schedule | Webhook | API | Retry
  json::Value input;
  std::string extra_instructions;
  int max_turns = 60;
  std::string time_zone;  // the job's, "" = UTC only
  std::vector<Duration> transient_retries{Duration(2'000), Duration(10'000), Duration(30'000)};
};

struct Result {
  enum class End { succeeded, failed, stopped } end = End::failed;
  std::string message;  // why it failed; the inventory's texts
  std::string summary;
  int turns = 0;
  std::vector<std::string> remembered;
};

// `stopped`: run.stop() was requested (cancel, timeout, shutdown); the driver knows why.
// Throws only what SandboxIO throws when the sandbox or the engine is gone.
Result run_agent(const Params& params);

}  // namespace umpteenth::agent
