// The status of a SandboxEngine, honest about what is not enforced. Pure.
#pragma once

#include <optional>
#include <string>

#include "apis/sandbox_engine.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/types.h"

namespace umpteenth::controllers::sandbox_engine {

struct Observed {
  std::optional<engine::Info> info;  // none: the engine did not answer
  std::string error;                 // why not
  int64_t running = 0;               // sandboxes of runs in execution here
};

// Why the spec cannot be served by this umpd whatever the engine answers, or "".
std::string unsupported(const apis::SandboxEngineSpec& spec);

json::Value plan_status(const json::Value& object, const Observed& observed, Time now);

// Why a run with Internet access must not start on it, or "". Nothing of the host's firewall is
// installed, so only egressFilter: off lets it through.
std::string internet_refusal(const std::string& engine, const apis::SandboxEngineSpec& spec);

}  // namespace umpteenth::controllers::sandbox_engine
